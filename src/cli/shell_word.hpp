// A text as one word of a command line, for sh as for csh and fish, which users may have as their login shell.
#pragma once

#include <string>
#include <string_view>

namespace mpisec::cli {

/// `text` itself where no shell would change it. Else in single quotes, with each character that has a meaning there to one of these shells
/// (' for all, \ for fish, ! for csh) behind a backslash of its own, outside the quotes.
inline std::string shell_word(std::string_view text) {
    constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+:,./-";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\' || c == '!')
            result += std::string("'\\") + c + "'";
        else
            result += c;
    }
    return result + "'";
}

}  // namespace mpisec::cli
