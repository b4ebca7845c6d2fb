#include "provider/libraries.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <array>
#include <cstring>

#include "aead/aead.hpp"
#include "base/elf.hpp"

namespace mpisec::provider {
namespace {

constexpr std::array<const char*, max_libraries - 2> names = {"boringssl", "ipp", "ipsec-mb"};

std::string path(const char* name) {
    return aead::plugin_directory() + "/libmpisec-cipher-" + name + ".so";
}

// As the AEAD plug-ins are: OpenSSL and BoringSSL export the same names.
int open_flags() {
    const bool sanitized = dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init");
    return RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (sanitized ? 0 : RTLD_DEEPBIND);
}

// What cannot be opened is done without: OpenSSL has everything.
const mpisec_cipher_plugin* open(const char* name) {
    const std::string file = path(name);
    void* handle = read_elf(file) ? dlopen(file.c_str(), open_flags()) : nullptr;
    if (!handle) return nullptr;
    auto* table = static_cast<const mpisec_cipher_plugin*>(dlsym(handle, MPISEC_CIPHER_PLUGIN_SYMBOL));
    return table && table->abi == MPISEC_CIPHER_PLUGIN_VERSION ? table : nullptr;
}

}  // namespace

const std::vector<const mpisec_cipher_plugin*>& libraries() {
    static const auto& all = *[] {
        auto* found = new std::vector<const mpisec_cipher_plugin*>;
        for (const char* name : names)
            if (const mpisec_cipher_plugin* table = open(name)) found->push_back(table);
        found->push_back(&shared_gcm_library());
        found->push_back(&openssl_library());
        return found;
    }();
    return all;
}

std::string installed_plugins() {
    std::string text;
    for (const char* name : names) {
        struct stat file {};
        if (stat(path(name).c_str(), &file) == 0)
            text += std::string(name) + " " + std::to_string(file.st_size) + " " +
                    std::to_string(file.st_mtim.tv_sec) + "." + std::to_string(file.st_mtim.tv_nsec) + " ";
    }
    return text;
}

}  // namespace mpisec::provider
