// mpisec provider: prints how to give programs the OpenSSL provider (docs/provider.md).
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/places.hpp"
#include "cli/say.hpp"

namespace mpisec::cli {
namespace {

// The default provider stays: it has all other algorithms, and those of AES that no library does faster. The `?` makes
// our provider a preference, not a condition.
constexpr const char* configuration =
    "# What mpisec provider printed: OPENSSL_CONF=THIS-FILE PROGRAM, or these lines in the system's "
    "openssl.cnf.\n"
    "openssl_conf = openssl_init\n\n"
    "[openssl_init]\n"
    "providers = provider_sect\n"
    "alg_section = algorithm_sect\n\n"
    "[provider_sect]\n"
    "default = default_sect\n"
    "mpisec = mpisec_sect\n\n"
    "[default_sect]\n"
    "activate = 1\n\n"
    "[mpisec_sect]\n"
    "module = %s\n"
    "activate = 1\n\n"
    "[algorithm_sect]\n"
    "default_properties = ?provider=mpisec\n";

Result<std::string> provider_path() {
    const std::filesystem::path path = std::filesystem::path(library_directory()) / "libmpisec-provider.so";
    std::error_code error;
    if (library_directory().empty() || !std::filesystem::exists(path, error))
        return fail("this installation of MPIsec has no libmpisec-provider.so");
    return path.string();
}

}  // namespace

void add_provider(CLI::App& app, Status& status) {
    auto only_path = std::make_shared<bool>(false);
    CLI::App* command =
        app.add_subcommand("provider", "Print the configuration that gives OpenSSL's users the fastest AES");
    command->footer(
        "  mpisec provider > mpisec.cnf\n"
        "  OPENSSL_CONF=$PWD/mpisec.cnf openssl speed -evp aes-128-ctr\n"
        "  OPENSSL_CONF=$PWD/mpisec.cnf openssl list -providers");
    command->add_flag("--path", *only_path, "only the path of the module");
    command->callback([=, &status] {
        const Result<std::string> path = provider_path();
        if (path) std::printf(*only_path ? "%s\n" : configuration, path->c_str());
        status = path ? 0 : complain("provider", path.error());
    });
}

}  // namespace mpisec::cli
