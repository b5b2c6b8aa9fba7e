# bite.awk - reads test/sim/bites and makes its changes.
#
#   awk -v block=0 -f tools/bite.awk FILE       lists the blocks: number, group,
#       name, reason why it is not noticed, changes; separated by tabs
#   awk -v block=N -v tree=T -f ...             makes the changes of block N in
#       the copy T of the tree, and prints the names of the files
#
# Every block is tried, also those that are not asked for: lines that are not
# found, or found twice, end it with 1.

function wrong(at, what) {
    print FILENAME ":" at ": " what >"/dev/stderr"
    bad = 1
}

function trim(line) {
    sub(/^[ \t]+/, "", line)
    return line
}

function load(file,   line) {
    if (file in lines)
        return
    lines[file] = 0
    while ((getline line <file) > 0)
        text[file, ++lines[file]] = line
    close(file)
}

function stands_at(place,   i) {
    if (before != "" && (place == 1 || trim(text[file, place - 1]) != before))
        return 0
    for (i = 1; i <= was_count; i++)
        if (trim(text[file, place + i - 1]) != was[i])
            return 0
    return 1
}

# Makes the change that was read, in memory.
function change(   i, found, place, grows) {
    if (file == "" || (was_count == 0 && is_count == 0))
        return
    load(file)
    for (i = 1; was_count > 0 && i + was_count - 1 <= lines[file]; i++)
        if (stands_at(i)) {
            found++
            place = i
        }
    if (found != 1) {
        wrong(change_at, found == 0 ? "not found in " file : \
            "found " found " times in " file ": needs a line before it, as @")
    } else {
        grows = is_count - was_count
        for (i = lines[file]; grows > 0 && i >= place + was_count; i--)
            text[file, i + grows] = text[file, i]
        for (i = place + was_count; grows < 0 && i <= lines[file]; i++)
            text[file, i + grows] = text[file, i]
        lines[file] += grows
        for (i = 1; i <= is_count; i++)
            text[file, place + i - 1] = is[i]
        touched[file] = 1
    }
    changed++
    before = ""
    was_count = is_count = 0
}

function write_out(   name, i, out) {
    for (name in touched) {
        out = tree "/" name
        printf "" >out
        for (i = 1; i <= lines[name]; i++)
            print text[name, i] >out
        close(out)
        print name
    }
}

function end_block() {
    if (name == "")
        return
    change()
    if (changed == 0)
        wrong(FNR, "nothing is changed")
    if (name in known)
        wrong(FNR, "two of this name")
    known[name] = 1
    number++
    if (block == 0)
        print number "\t" group "\t" name "\t" reason "\t" changes
    else if (block == number)
        write_out()
    name = file = changes = reason = ""
    changed = 0
    split("", lines)
    split("", text)
    split("", touched)
}

/^#/ { next }
/^$/ { end_block(); next }
name == "" && /^= / { group = substr($0, 3); next }
name == "" { name = $0; next }
/^unnoticed: / { reason = substr($0, 12); next }
{
    changes = changes $0 "\1"
    if (/^@ /) {
        change()
        before = trim(substr($0, 3))
    } else if (/^-( |$)/) {
        if (is_count > 0)
            change()
        if (was_count == 0)
            change_at = FNR
        was[++was_count] = trim(substr($0, 3))
    } else if (/^\+( |$)/) {
        if (was_count == 0)
            change_at = FNR
        is[++is_count] = substr($0, 3)
    } else {
        change()
        file = $0
    }
}
END {
    end_block()
    exit bad
}
