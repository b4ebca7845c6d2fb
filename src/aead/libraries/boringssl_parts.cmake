# Read by BoringSSL's own build: leaves out of its libcrypto what no AEAD reaches, certificates above all, which is two thirds of its
# compile time. The plug-ins link with --no-undefined, so leaving out too much fails the build.
function(mpisec_leave_out)
  get_target_property(sources crypto SOURCES)
  list(FILTER sources EXCLUDE REGEX "^crypto/(asn1|base64|bio|buf|cipher|cms|conf|des|hpke|hrss|pem|pkcs7|pkcs8|pool|rc4|siphash|slhdsa|spake2plus|trust_token|x509|xwing)/")
  list(FILTER sources EXCLUDE REGEX "^crypto/evp/(evp_asn1|evp_kem|p_keccak|p_xwing|pbkdf|print|scrypt|sign)[.]cc$")
  list(APPEND sources crypto/asn1/a_object.cc crypto/asn1/posix_time.cc crypto/bio/bio.cc crypto/bio/file.cc crypto/cipher/e_chacha20poly1305.cc)
  set_target_properties(crypto PROPERTIES SOURCES "${sources}")
endfunction()
cmake_language(DEFER CALL mpisec_leave_out)
