/* script_text.c - tests of the normal form of scripts. */
#include "server/script.h"

#include "support/test.h"

TEST_ONE_THREAD;

/* The normal form, in which the first variable is `A`, the second `B`. */
#define NORMAL(text, expected)                                        \
    do {                                                              \
        char out_[256];                                               \
        size_t len_ =                                                 \
            script_normalise(hf_bytes(text, sizeof(text) - 1), out_); \
        for (size_t i_ = 0; i_ < len_; i_++)                          \
            if ((unsigned char)out_[i_] >= 0x80)                      \
                out_[i_] = (char)(out_[i_] - 0x80 + 'A');             \
        test_check_text(__FILE__, __LINE__, out_, len_, expected);    \
    } while (0)

TEST(blanks_and_comments_do_not_count)
{
    NORMAL("  return\t1 -- one\n", "return 1");
    NORMAL("return --[[ a\nlong ]] 1", "return 1");
    NORMAL("a --b\rc --d\r\ne", "a c e"); /* it ends a line, too */
    NORMAL("f ( a , b )\r\n\v\f", "f(a,b)");
    NORMAL("return 0;\nend;", "return 0 end");
    NORMAL("a;b", "a;b"); /* only at the end of a line, or of a word */
    NORMAL("{a; - b}; {}; c", "{a;-b}{}c"); /* in a table it parts two */
    NORMAL("{{1; }; 2; }; ", "{{1;};2;}");
    NORMAL("}; {2; }", "}{2;}");
    NORMAL("'{'; a; ", "\"{\"a");
    NORMAL("a . . b", "a. .b");
    NORMAL("x = - 1", "x= -1"); /* never closer than is safe */
    NORMAL("x = = 1", "x= =1");
    NORMAL("a - -b", "a- -b");
    NORMAL("a ~= b", "a~=b");
    NORMAL("", "");
}

TEST(strings_are_kept_but_for_their_quotes)
{
    NORMAL("f('a  b')", "f(\"a  b\")");
    NORMAL("f('a\"b')", "f('a\"b')");
    NORMAL("f(\"a'b\")", "f(\"a'b\")");
    NORMAL("f('--x')", "f(\"--x\")");
    NORMAL("redis.call('GET', K)", "redis.call(\"get\",K)");
    NORMAL("redis.pcall ( 'GeT', 'PX')", "redis.pcall(\"get\",\"PX\")");
    NORMAL("f('GET')", "f(\"GET\")"); /* no name of a command */
}

TEST(names_of_local_variables_do_not_count)
{
    NORMAL("local n = 1 return n", "local A=1 return A");
    NORMAL("local a, bc = 1, a return bc", "local A,B=1,A return B");
    NORMAL("n = 1 local n return n.n, m.n, m:n",
           "n=1 local A return A.n,m.n,m:n");
    NORMAL("local x local x", "local A local A");
    NORMAL("local function f(n)", "local function f(n)");
    NORMAL("local n\nn = 1 return n", "local A=1 return A"); /* set at once */
    NORMAL("local n local m n = 1", "local A local B A=1");
    NORMAL("local n, m m = 1", "local A,B B=1");
    NORMAL("local n n == 1", "local A A==1");
    NORMAL("local n f(n) n = 1", "local A f(A)A=1");
    NORMAL("local n n", "local A A");
    NORMAL("local n n=", "local A A=");
    NORMAL("local a = f(b, c)", "local A=f(b,c)"); /* a comma of another list */
}

TEST(what_no_known_script_has_is_not_read)
{
    NORMAL("return [[x]]", "");
    NORMAL("return [=[x]=]", "");
    NORMAL("--[=[\nreturn 1\n--]=]", "");
    NORMAL("--[[ no end", "");
    NORMAL("f('no end", "");
    NORMAL("f('no\nend')", "");
    NORMAL("f('a\\n')", "");
    NORMAL("return \0 1", "");
    NORMAL("return \x80", "");
    NORMAL("local a1 local a2 local a3 local a4 local a5 local a6 local a7 "
           "local a8 local a9 local b1 local b2 local b3 local b4 local b5 "
           "local b6 local b7 local b8 local b9 local c1 local c2 local c3 "
           "local c4 local c5 local c6 local c7 local c8",
           "local A local B local C local D local E local F local G local H "
           "local I local J local K local L local M local N local O local P "
           "local Q local R local S local T local U local V local W local X "
           "local Y local Z");
}
