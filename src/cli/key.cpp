// mpisec key: manages the long-term key file (src/keys/key_file.hpp). The key itself is never printed.
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/key_share.hpp"
#include "cli/say.hpp"
#include "cli/shell_word.hpp"
#include "config/settings.hpp"
#include "keys/key_file.hpp"

namespace mpisec::cli {
namespace {

constexpr const char* key_examples =
    "Every rank of a job needs the same key, in a file that only its owner may read.\n\n"
    "  mpisec key new                    a fresh key in ~/.config/mpisec/key (or MPISEC_KEY_FILE)\n"
    "  mpisec key new /etc/job/key       in another file\n"
    "  mpisec key derive --from /etc/mpisec/site.key --label \"job 7\" /run/job-7/key    the same key on "
    "every node\n"
    "  mpisec key share node1 node2      copy it to other nodes over ssh\n"
    "  mpisec key show                   path, permissions and fingerprint, to compare nodes; never the key\n"
    "  mpiexec -n 4 -ppn 1 mpisec key check    is it usable on every node?";

/// `given`, else what the settings say (MPISEC_KEY_FILE, the configuration file, the default).
Result<std::string> path_or_setting(const std::string& given) {
    if (!given.empty()) return given;
    auto settings = config::load();
    if (!settings) return tl::unexpected(settings.error());
    return settings->key_file;
}

Result<void> create(const std::string& path) {
    if (auto made = keys::create_key_file(path); !made) return made;
    auto key = keys::read_key_file(path);
    if (!key) return tl::unexpected(key.error());
    const auto usual = path_or_setting("");
    const std::string setting =
        usual && *usual == path
            ? ""
            : "MPISEC_KEY_FILE=" + shell_word(std::filesystem::absolute(path).string()) + " ";
    std::printf(
        "%s: new key, fingerprint %s\nEvery node that does not share the file needs a copy: `%smpisec key "
        "share NODES...` does it over ssh; compare them with `%smpisec key show`.\n",
        path.c_str(), keys::fingerprint(*key).c_str(), setting.c_str(), setting.c_str());
    if (!setting.empty()) std::printf("Jobs use this key where %sis set.\n", setting.c_str());
    return {};
}

Result<void> show(const std::string& path) {
    auto key = keys::read_key_file(path);
    if (!key) return tl::unexpected(key.error());
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return fail("cannot look at " + path);
    std::printf("file         %s\npermissions  %04o, user %u, group %u\nfingerprint  %s\n", path.c_str(),
                status.st_mode & 07777u, status.st_uid, status.st_gid, keys::fingerprint(*key).c_str());
    return {};
}

Result<void> check(const std::string& path) {
    auto key = keys::read_key_file(path);
    if (!key) return tl::unexpected(key.error());
    std::printf("%s is usable, fingerprint %s\n", path.c_str(), keys::fingerprint(*key).c_str());
    return {};
}

void add(CLI::App& parent, Status& status, const char* name, const char* what,
         Result<void> (*act)(const std::string&)) {
    auto path = std::make_shared<std::string>();
    CLI::App* command = parent.add_subcommand(name, what);
    command->add_option("FILE", *path, "the key file; default: MPISEC_KEY_FILE, else ~/.config/mpisec/key");
    command->callback([=, &status] {
        if (command->count("FILE") > 0 && path->empty()) {  // as of a variable that is not set
            status = complain("key", {"the name of the key file is empty"});
            return;
        }
        auto done = path_or_setting(*path).and_then(act);
        status = done ? 0 : complain("key", done.error());
    });
}

struct Derivation {
    std::string path, from, label;
};

Result<void> derive(const Derivation& wanted) {
    auto from = keys::read_key_file(wanted.from);
    if (!from) return tl::unexpected(from.error());
    if (auto made = keys::derive_key_file(wanted.path, *from, wanted.label); !made) return made;
    return check(wanted.path);
}

void add_derive(CLI::App& parent, Status& status) {
    auto wanted = std::make_shared<Derivation>();
    CLI::App* command = parent.add_subcommand(
        "derive",
        "Write a key that follows from another key file and a label, for prologues of jobs: nothing is sent");
    command->add_option("FILE", wanted->path, "the new key file")->required();
    command->add_option("--from", wanted->from, "key file that it follows from")
        ->required()
        ->type_name("FILE");
    command
        ->add_option("--label", wanted->label, "what distinguishes it from others, such as the job's number")
        ->required()
        ->check([](const std::string& label) {
            return std::string(label.empty() ? "must not be empty: it is what distinguishes the key" : "");
        });
    command->callback([=, &status] {
        auto done = derive(*wanted);
        status = done ? 0 : complain("key", done.error());
    });
}

}  // namespace

void add_key(CLI::App& app, Status& status) {
    CLI::App* key = app.add_subcommand("key", "Make or look at the key file");
    key->footer(key_examples);
    key->require_subcommand(1);
    add(*key, status, "new", "Write a fresh random key to a new file that only you may read", create);
    add_key_share(*key, status);
    add_derive(*key, status);
    add(*key, status, "show", "Print the file's path, permissions and fingerprint, never the key", show);
    add(*key, status, "check", "Tell whether the file can be used; exit status 1 when not", check);
}

}  // namespace mpisec::cli
