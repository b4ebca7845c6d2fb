// The key goes through the standard input of ssh: others can see arguments and environment, and a launcher would send them in clear.
#include "cli/key_share.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/say.hpp"
#include "cli/shell_word.hpp"
#include "config/settings.hpp"
#include "keys/key_file.hpp"
#include "keys/secret.hpp"

namespace mpisec::cli {
namespace {

constexpr int there_already = 8, another_there = 9;

// Run on the node by its /bin/sh, whatever the user's shell is there. $f is the file; $n is its size, because connections may end early; $r is "yes" when another key may
// be replaced. mktemp makes a file of mode 0600.
constexpr const char* remote_script =
    "umask 077; d=$(dirname \"$f\") && mkdir -p \"$d\" && t=$(mktemp \"$f.XXXXXX\") || exit 1; "
    "cat >\"$t\" && test \"$(wc -c <\"$t\")\" -ge \"$n\" || { rm -f \"$t\"; exit 1; }; "
    "if test -e \"$f\" && test \"$r\" != yes; then cmp -s \"$t\" \"$f\"; same=$?; rm -f \"$t\"; "
    "if test $same -eq 0; then exit 8; else exit 9; fi; fi; mv -f \"$t\" \"$f\"";

struct Sharing {
    std::string file, ssh = "ssh";
    bool replace = false;
    std::vector<std::string> nodes;
};

/// The file's name for the script: relative to the home directory, which may be another one there, or as it is.
std::string remote_path(const std::string& path) {
    const char* home = std::getenv("HOME");
    const std::string below = home && *home ? std::string(home) + "/" : "";
    if (!below.empty() && path.starts_with(below))
        return "\"$HOME\"/" + shell_word(path.substr(below.size()));
    return shell_word(path);
}

/// In the child; does not return.
void become_ssh(const Sharing& sharing, const std::string& node, const std::string& command, int key) {
    dup2(key, STDIN_FILENO);
    execlp(sharing.ssh.c_str(), sharing.ssh.c_str(), "-o", "BatchMode=yes", "--", node.c_str(),
           command.c_str(), nullptr);
    std::fprintf(stderr, "mpisec key: cannot start %s: %s\n", sharing.ssh.c_str(), std::strerror(errno));
    _exit(127);
}

/// Copies the file's content to the node; returns the exit status of what ran there.
int copy_to(const Sharing& sharing, const std::string& path, const std::string& node) {
    // ssh itself reads it: it is never in our memory.
    const int key = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (key < 0) return 1;
    struct stat file {};
    fstat(key, &file);
    const std::string script = "f=" + remote_path(path) + "; n=" + std::to_string(file.st_size) +
                               "; r=" + (sharing.replace ? "yes" : "no") + "; " + remote_script;
    const std::string command = "/bin/sh -c " + shell_word(script);
    const pid_t child = fork();
    if (child == 0) become_ssh(sharing, node, command, key);
    close(key);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return 1;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Prints the result for a node; returns whether it has the key now.
bool report(const std::string& node, const std::string& path, int status) {
    std::string what = "the key is there now: " + path;
    if (status == there_already) what = "had this key already";
    if (status == another_there)
        what =
            "NOT copied: another file is at " + path + " there; `mpisec key share --replace` writes over it";
    if (status == 255) what = "NOT copied: ssh could not connect (see above)";
    const bool fine = status == 0 || status == there_already;
    if (!fine && status != another_there && status != 255)
        what = "NOT copied: " + path + " cannot be written there (status " + std::to_string(status) + ")";
    std::printf("%-20s %s\n", node.c_str(), what.c_str());
    return fine;
}

Result<void> share(const Sharing& sharing) {
    auto settings = config::load();
    if (!settings) return tl::unexpected(settings.error());
    // The node's shell would take a relative name from the home directory there.
    const std::string path =
        std::filesystem::absolute(sharing.file.empty() ? settings->key_file : sharing.file);
    if (auto key = keys::read_key_file(path); !key) return tl::unexpected(key.error());
    std::string failed;
    for (const std::string& node : sharing.nodes) {
        if (node.starts_with('-')) return fail(node + " is not the name of a node");
        if (!report(node, path, copy_to(sharing, path, node))) failed += (failed.empty() ? "" : ", ") + node;
        std::fflush(stdout);
    }
    if (!failed.empty()) return fail("these nodes do not have the key: " + failed);
    return {};
}

}  // namespace

void add_key_share(CLI::App& key, Status& status) {
    auto sharing = std::make_shared<Sharing>();
    CLI::App* command =
        key.add_subcommand("share", "Copy the key file to other nodes over ssh, readable by you alone");
    command->footer(
        "  mpisec key share node1 node2\n\n"
        "The key travels inside the ssh connection, never in an argument or a variable. A node that has "
        "another key keeps it, unless --replace is given. Exit status 1 when a node does not have the key "
        "afterwards.");
    command->add_option("NODES", sharing->nodes, "where to copy it, as for ssh: node or user@node")
        ->required();
    command
        ->add_option("--file", sharing->file,
                     "the key file; default: MPISEC_KEY_FILE, else ~/.config/mpisec/key")
        ->type_name("FILE");
    command->add_option("--ssh", sharing->ssh, "a program that takes ssh's place")->type_name("PROGRAM");
    command->add_flag("--replace", sharing->replace, "write over another key");
    command->callback([=, &status] {
        if (command->count("--file") > 0 && sharing->file.empty()) {  // as of a variable that is not set
            status = complain("key", {"the name of the key file is empty"});
            return;
        }
        auto done = share(*sharing);
        status = done ? 0 : complain("key", done.error());
    });
}

}  // namespace mpisec::cli
