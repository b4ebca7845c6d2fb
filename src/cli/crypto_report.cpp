#include "cli/crypto_report.hpp"

#include <cstdio>
#include <string>

#include "aead/aead.hpp"

namespace mpisec::cli {

bool print_crypto_libraries() {
    bool any = false;
    for (const std::string& name : aead::available()) {
        auto library = aead::load(name);
        if (!library) {
            std::printf("crypto       %-10s cannot be used: %s\n", name.c_str(),
                        library.error().message.c_str());
            continue;
        }
        std::string ciphers;
        for (const aead::CipherInfo& cipher : aead::ciphers())
            if ((*library)->has(cipher.id)) ciphers += " " + std::string(cipher.name);
        std::printf("crypto       %-10s %s:%s\n", name.c_str(), (*library)->version().c_str(),
                    ciphers.c_str());
        any = any || !ciphers.empty();
    }
    if (!any) std::printf("crypto       no library in %s can be used\n", aead::plugin_directory().c_str());
    return any;
}

}  // namespace mpisec::cli
