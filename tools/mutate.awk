# mutate.awk - lists every small change that tools/mutate can make in C files.
#
#   awk -f tools/mutate.awk FILE...
#
# One line per mutant, fields separated by tabs:
#
#   file line column end_line end_column kind text original changed before
#
# What stands from `column` of `line` to before `end_column` of `end_line` is to
# be replaced by `text`; `original` and `changed` are those lines before and
# after, on one line, for people to read; `before` is the line above them. Code
# is expected as clang-format leaves it: an operator between two blanks has two
# operands. Comments, strings, the preprocessor's lines, assertions and
# definitions of types are left alone.

BEGIN {
    swap("<", "<= >="); swap("<=", "< >"); swap(">", ">= <="); swap(">=", "> <")
    swap("==", "!="); swap("!=", "==")
    arithmetic = " + - * / % & | ^ << >> += -= *= /= %= &= |= ^= <<= >>= ++ -- "
    swap("+", "-"); swap("-", "+"); swap("*", "/"); swap("/", "*")
    swap("%", "*"); swap("&", "|"); swap("|", "&"); swap("^", "|")
    swap("<<", ">>"); swap(">>", "<<"); swap("++", "--"); swap("--", "++")
    swap("+=", "-="); swap("-=", "+="); swap("*=", "/="); swap("/=", "*=")
    swap("%=", "="); swap("&=", "|="); swap("|=", "&="); swap("^=", "|=")
    swap("<<=", ">>="); swap(">>=", "<<=")
    swap("&&", "||"); swap("||", "&&")
    swap("true", "false"); swap("false", "true")
}

FNR == 1 && name != "" { mutate() }
FNR == 1 { name = FILENAME; count = 0; in_comment = 0; in_macro = 0 }
{ source[FNR] = $0; read_tokens($0, FNR) }
END { if (name != "") mutate() }

function swap(from, to) { swaps[from] = to }

# Adds the tokens of one line: text, line, column and the column behind it.
function read_tokens(line, number,    at, rest, size, first) {
    at = 1
    first = !in_comment && !in_macro && line ~ /^[ ]*#/
    if (first || in_macro) {
        in_macro = line ~ /\\$/
        return
    }
    while (at <= length(line)) {
        rest = substr(line, at)
        if (in_comment) {
            size = index(rest, "*/")
            if (size == 0)
                return
            in_comment = 0
            at += size + 1
            continue
        }
        if (match(rest, /^[ ]+/)) {
            at += RLENGTH
            continue
        }
        if (substr(rest, 1, 2) == "/*") {
            in_comment = 1
            at += 2
            continue
        }
        if (substr(rest, 1, 2) == "//")
            return
        if (match(rest, /^[A-Za-z_][A-Za-z_0-9]*/) ||
            match(rest, /^[0-9][0-9A-Za-z.]*/) ||
            match(rest, /^"([^"\\]|\\.)*"/) || match(rest, /^'([^'\\]|\\.)*'/) ||
            match(rest, /^(<<=|>>=|\.\.\.)/) ||
            match(rest, /^(->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\|)/) ||
            match(rest, /^[-+*\/%&|^]=/))
            size = RLENGTH
        else
            size = 1
        count++
        T[count] = substr(rest, 1, size)
        L[count] = number
        C[count] = at
        E[count] = at + size
        at += size
    }
}

# Finds what each token stands in: F (function), A (array or table of values),
# or "" (types, declarations, assertions); the depth of its parentheses inside
# the innermost braces; the partner of each bracket; and which `)` ends the head
# of an if, a loop or a switch.
function read_shape(    i, top, kind, outer, has_value, depth, stack, parens, t, quiet) {
    top = depth = quiet = has_value = 0
    outer = ""
    for (i = 1; i <= count; i++) {
        t = T[i]
        P[i] = partner[i] = head[i] = 0
        if (t == "{") {
            kind = outer
            if (top == 0)
                kind = has_value ? "A" : T[i - 1] == ")" ? "F" : ""
            stack[++top] = i
            kinds[top] = outer
            parens[top] = depth
            outer = kind
            depth = 0
        } else if (t == "}" && top > 0) {
            partner[i] = stack[top]
            partner[stack[top]] = i
            outer = kinds[top]
            depth = parens[top--]
            if (top == 0)
                has_value = 0
        } else if (t == "(" || t == "[") {
            open[++depth + 1000 * top] = i
            if (!quiet && T[i - 1] ~ /^(_Static_assert|[a-z_]*assert)$/)
                quiet = i
        } else if ((t == ")" || t == "]") && depth > 0) {
            partner[i] = open[depth + 1000 * top]
            partner[partner[i]] = i
            depth--
            if (T[partner[i] - 1] ~ /^(if|while|for|switch)$/)
                head[i] = 1
            if (partner[i] == quiet)
                quiet = 0
        } else if (top == 0 && t == "=") {
            has_value = 1
        } else if (top == 0 && t == ";") {
            has_value = 0
        }
        P[i] = depth
        D[i] = top
        S[i] = quiet ? "" : outer
    }
}

# The text of the lines `from` to `to`, on one line, without its indentation.
function joined(from, to,    i, text, part) {
    text = ""
    for (i = from; i <= to; i++) {
        part = source[i]
        sub(/^ +/, "", part)
        text = text (i > from ? " " : "") part
    }
    return text
}

# The code from token i up to, not including, token j.
function code(i, j,    k, text) {
    text = T[i]
    for (k = i + 1; k < j; k++)
        text = text (L[k] > L[k - 1] || C[k] > E[k - 1] ? " " : "") T[k]
    return text
}

# emit KIND, first token, last token, text: one mutant. With nothing in its
# place a token goes with the blank beside it.
function emit(kind, i, j, text,    from, to, changed) {
    from = C[i]
    to = E[j]
    if (text == "" && L[i - 1] == L[i] && (kind == "condition" && T[i] ~ /^[&|]/))
        from = E[i - 1]
    else if (text == "" && L[j + 1] == L[j])
        to = C[j + 1]
    changed = substr(source[L[i]], 1, from - 1) text substr(source[L[j]], to)
    sub(/^ +/, "", changed)
    printf "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", name, L[i], from, L[j], to, \
        kind, text, joined(L[i], L[j]), changed, joined(L[i] - 1, L[i] - 1)
}

function is_spaced(i,    line) {
    line = source[L[i]]
    return substr(line, C[i] - 1, 1) == " " && (E[i] > length(line) ||
           substr(line, E[i], 1) == " ")
}

# Comparisons, arithmetic, && and ||, true and false, numbers.
function operators(i,    t, kind, way, n, k) {
    t = T[i]
    if (t ~ /^[0-9]/) {
        emit("constant", i, i, "(" t " + 1)")
        if (t !~ /^0[uUlL]*$/)
            emit("constant", i, i, "(" t " - 1)")
        return
    }
    if (!(t in swaps))
        return
    if (index(arithmetic, " " t " ")) {
        kind = "arithmetic"
        if (t != "++" && t != "--" && !is_spaced(i))
            return
    } else if (t == "true" || t == "false")
        kind = "truth"
    else
        kind = t == "&&" || t == "||" ? "logic" : "comparison"
    n = split(swaps[t], way, " ")
    for (k = 1; k <= n; k++)
        emit(kind, i, i, way[k])
    if (kind == "logic")
        operands(i)
}

# An operand of && or || is dropped, with the operator.
function operands(i,    j, ends, same) {
    same = T[i] == "&&" ? "&&" : ""
    for (j = i + 1; j <= count; j++) {
        if (P[j] < P[i] || D[j] < D[i])
            break
        if (P[j] == P[i] && D[j] == D[i] && (T[j] ~ /^([;,?:]|\|\|)$/ ||
            T[j] == same))
            break
    }
    emit("condition", i, j - 1, "")
    for (j = i - 1; j > 0; j--) {
        ends = P[j] == P[i] && D[j] == D[i]
        if (P[j] < P[i] || D[j] < D[i] || (ends && (T[j] ~ /^[;,?:={}]$/ ||
            T[j] ~ /^(\|\||return)$/ || T[j] == same)))
            break
        # The bracket that opens the level has the level's own depth.
        if (ends && (T[j] == "(" || T[j] == "[") && partner[j] > i)
            break
    }
    if (T[j] != "||" && T[j] != same)
        emit("condition", j + 1, i, "")
}

# The condition of an if or a while is negated or dropped.
function conditions(i,    open_at, close_at, text) {
    if (T[i] != "if" && T[i] != "while")
        return
    open_at = i + 1
    close_at = partner[open_at]
    if (!close_at || close_at == open_at + 1)
        return
    text = code(open_at + 1, close_at)
    if (T[i] == "if") {
        if (text ~ /&&|\|\|/ || text !~ /^!| (<|<=|>|>=|==|!=) /)
            emit("negation", open_at, close_at, "(!(" text "))")
        emit("condition", open_at, close_at, "(1)")
    }
    if (T[close_at + 1] == "{" || T[i] == "while")
        emit("condition", open_at, close_at, "(0)")
}

# Token i begins a statement: the one that it begins is dropped, or returns
# something else.
function statements(i,    j, first, second, text) {
    first = T[i]
    second = T[i + 1]
    if (first ~ /^(if|while|for|switch|do|else|case|default|static|const|struct|enum|union|sizeof)$/ ||
        first ~ /assert$/)
        return
    if (first !~ /^(return|break|continue|goto|\*|\(|\+\+|--)$/ &&
        !(first ~ /^[A-Za-z_]/ && second ~ /^(\(|\[|=|->|\.|\+\+|--|<<=|>>=|[-+*\/%&|^]=)$/))
        return
    for (j = i; j <= count; j++)
        if (D[j] < D[i] || (D[j] == D[i] && T[j] == ";" && P[j] == 0))
            break
    if (D[j] < D[i] || j > count)
        return
    text = code(i, j)
    if (text ~ /^\(void\)[a-z_]+$/)
        return
    if (first == "return" && j > i + 1) {
        if (second == "HF_OK")
            emit("return", i, j, "return 1;")
        else if (text !~ /^return (0|NULL|false|true)$/)
            emit("return", i, j, "return 0;")
    }
    # The last return of a function cannot be missed.
    if (first == "return" && T[j + 1] == "}" && D[j + 1] == 0)
        return
    emit("statement", i, j, ";")
}

function starts_statement(i,    before) {
    before = T[i - 1]
    return P[i] - (T[i] == "(") == 0 && (before ~ /^([;{}:]|else|do)$/ || head[i - 1])
}

function mutate(    i) {
    read_shape()
    for (i = 1; i <= count; i++) {
        if (S[i] == "")
            continue
        operators(i)
        if (S[i] != "F" || D[i] == 0)
            continue
        if (T[i] == "!" && T[i + 1] != "=")
            emit("negation", i, i, "")
        conditions(i)
        if (starts_statement(i))
            statements(i)
    }
}
