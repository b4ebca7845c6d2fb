// Names for the sentences of the aead module's errors, and the path of a plug-in's file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aead/aead.hpp"

namespace mpisec::aead {

/// "a, b, c", or "none".
std::string join(const std::vector<std::string>& names);

/// The ciphers that `library` offers on this CPU.
std::vector<std::string> cipher_names(const Library& library);

/// DIRECTORY/libmpisec-aead-NAME.so
std::string plugin_path(std::string_view name, const std::string& directory);

}  // namespace mpisec::aead
