// The long-term key: a file that only its owner may read (S5).
//
// One line of text, 86 bytes and a newline:
//
//     mpisec-key-1 KKKK…KKKK CCCCCCCC
//
// K: the 32 key bytes as 64 lower-case hexadecimal digits. C: the first 4 bytes of SHA-256("mpisec-key-1" | key) as 8 digits, which detect
// typing and copying mistakes. The file is text, so that it can be carried as a cluster secret (Kubernetes, Vault) and through a terminal.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "keys/secret.hpp"

namespace mpisec::keys {

/// Reads the key. The checks apply to the file that was opened, so a symbolic link is as good as what it points to. The file must be a
/// regular file, owned by the effective user or by root, with no permission at all for group and others. That accepts what a cluster
/// mounts: a Kubernetes secret with defaultMode 0400 when the container runs as root (its links lead to a file that root owns and only root
/// can read). It refuses the default mode 0644 and the mode 0440 that fsGroup makes: copy such a secret to a file of mode 0600 first.
/// Errors are sentences that name the path and what to do.
Result<Secret> read_key_file(const std::string& path);

/// Writes a fresh random key to a new file of mode 0600 and syncs it to disk. Missing parent directories are made with mode 0700. Never
/// overwrites: a file that exists already is an error.
Result<void> create_key_file(const std::string& path);

/// As create_key_file(), with the key that follows from another one and a label: HKDF-Expand(key, "mpisec v1 derived key " | label, 32)
/// (RFC 5869). Whoever has both makes the same key on every node, and the derived key tells nothing about the key that it was made from.
Result<void> derive_key_file(const std::string& path, const Secret& from, std::string_view label);

/// 16 hexadecimal digits that name the key and tell nothing about it, to compare what two nodes have:
/// HKDF-Expand(key, "mpisec v1 key fingerprint", 8) (RFC 5869). Safe to print.
std::string fingerprint(const Secret& key);

}  // namespace mpisec::keys
