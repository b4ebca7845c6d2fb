// What is quoted is one word, and the same text, for every shell that is here.
#include "cli/shell_word.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace mpisec::cli {
namespace {

const char* const texts[] = {"",           "a b",      "it's", "'",     "$HOME `id`", "a;b|c&d",
                             "x=y",        "~",        "*",    "\\",    "a\\'b",      "\\\\",
                             "\"quoted\"", "wow!!",    "!1",   "{a,b}", "(a) <b> #c", "-n",
                             "a\\nb",      "\xc3\xa4", "%1",   "=ls"};

bool is_here(const std::string& shell) {
    for (const char* directory : {"/bin/", "/usr/bin/"})
        if (access((directory + shell).c_str(), X_OK) == 0) return true;
    return false;
}

/// What `shell -c LINE` prints.
std::string printed(const std::string& shell, const std::string& line) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execlp(shell.c_str(), shell.c_str(), "-c", line.c_str(), nullptr);
        _exit(127);
    }
    close(ends[1]);
    std::string text;
    char part[256];
    for (ssize_t got = 0; (got = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(got));
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return text;
}

TEST(ShellWord, IsTheSameTextForEveryShell) {
    for (const std::string shell : {"sh", "bash", "dash", "zsh", "ksh", "tcsh", "csh", "fish"}) {
        if (!is_here(shell)) continue;
        for (const std::string text : texts)
            EXPECT_EQ(printed(shell, "/usr/bin/printf '[%s]' " + shell_word(text)), "[" + text + "]")
                << shell << ": " << shell_word(text);
    }
}

TEST(ShellWord, ALineWithinALine) {
    for (const std::string text : texts)
        EXPECT_EQ(printed("sh", "/bin/sh -c " + shell_word("/usr/bin/printf '[%s]' " + shell_word(text))),
                  "[" + text + "]");
}

TEST(ShellWord, StaysAsItIsWhereNothingIsSpecial) {
    EXPECT_EQ(shell_word("/home/me/.config/mpisec/key-1_a"), "/home/me/.config/mpisec/key-1_a");
    EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace mpisec::cli
