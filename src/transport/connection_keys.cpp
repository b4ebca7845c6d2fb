#include "transport/connection_keys.hpp"

#include <vector>

#include "keys/hkdf.hpp"

namespace mpisec::transport {

namespace {

keys::Secret expand(const keys::Secret& secret, keys::Bytes info) {
    if (!secret.alive()) keys::die_of_wiped_secret();
    keys::Secret expanded;
    keys::hkdf_expand(secret.span(), info, {expanded.data(), keys::secret_bytes});
    return expanded;
}

}  // namespace

keys::Secret connection_secret(const keys::Secret& long_term) {
    return expand(long_term, keys::as_bytes("mpisec v1 connections"));
}

Result<aead::Key> connection_key(const aead::Library& library, const keys::Secret& secret, Use use,
                                 const Destination& destination, std::span<const std::uint8_t> nonces) {
    constexpr std::string_view labels[] = {"client early", "client", "server"};
    const std::string_view label = labels[static_cast<std::size_t>(use)];
    std::vector<std::uint8_t> info(label.begin(), label.end());
    info.push_back(0);
    info.insert(info.end(), destination.begin(), destination.end());
    info.insert(info.end(), nonces.begin(), nonces.end());
    return library.make_key(cipher, expand(secret, info).data());
}

}  // namespace mpisec::transport
