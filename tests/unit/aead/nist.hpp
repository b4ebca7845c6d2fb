// NIST's vectors of AES-GCM (CAVP, gcmtestvectors).
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support.hpp"

namespace mpisec::aead::test {

struct Vector {
    std::string name;
    Bytes key, nonce, ad, plain, sealed;  // sealed: ciphertext, then tag
    bool valid;
    bool has_plain = true;
};

// NIST's .rsp files: "[IVlen = 96]" sets a parameter, "Key = hex" a field; a blank line ends a vector, FAIL
// marks a forgery.
inline std::vector<Vector> read_nist(const std::filesystem::path& file) {
    std::vector<Vector> vectors;
    std::map<std::string, std::string> parameters, fields;
    auto finish = [&] {
        if (fields.contains("Key") && parameters["IVlen"] == "96" && parameters["Taglen"] == "128") {
            Vector one{file.filename().string() + " " + parameters["PTlen"] + "/" + parameters["AADlen"] +
                           " " + fields["Count"],
                       from_hex(fields["Key"]),
                       from_hex(fields["IV"]),
                       from_hex(fields["AAD"]),
                       from_hex(fields["PT"]),
                       from_hex(fields["CT"] + fields["Tag"]),
                       !fields.contains("FAIL")};
            vectors.push_back(std::move(one));
        }
        fields.clear();
    };
    std::ifstream lines(file);
    std::string line;
    while (std::getline(lines, line)) {
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
        std::size_t equals = line.find(" =");
        std::string value =
            equals == std::string::npos || line.size() < equals + 3 ? "" : line.substr(equals + 3);
        if (line.empty())
            finish();
        else if (line[0] == '[')
            parameters[line.substr(1, equals - 1)] = value.substr(0, value.find(']'));
        else if (line[0] != '#')
            fields[line.substr(0, equals)] = value;
    }
    finish();
    return vectors;
}

}  // namespace mpisec::aead::test
