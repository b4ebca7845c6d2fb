// A key in a place where the path of its file is expected, as when the content of the file was put into MPISEC_KEY_FILE.
#pragma once

#include <string_view>

namespace mpisec {

/// Whether the text is a key, or the beginning of one, rather than a path; nothing shows such a text, nor makes a file of that name. A file whose name
/// begins like this needs a directory before it (`./`).
inline bool is_a_key(std::string_view text) {
    return text.starts_with("mpisec-key-") || text.find("mpisec-key-1 ") != std::string_view::npos;
}

/// The text as messages and tables show it.
inline std::string_view shown(std::string_view text) {
    return is_a_key(text) ? "(a key, not a path)" : text;
}

}  // namespace mpisec
