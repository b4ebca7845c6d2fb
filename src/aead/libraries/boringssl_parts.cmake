# Read by BoringSSL's own build: leaves out of its libcrypto what no AEAD reaches, certificates first, which are half of its compile time.
# The plug-in links with --no-undefined, so a part too many is a failed build.
function(mpisec_leave_out)
  get_target_property(sources crypto SOURCES)
  list(FILTER sources EXCLUDE REGEX "^crypto/(cms|conf|des|hpke|hrss|pem|pkcs7|pkcs8|pool|rc4|siphash|slhdsa|spake2plus|trust_token|x509|xwing)/")
  set_target_properties(crypto PROPERTIES SOURCES "${sources}")
endfunction()
cmake_language(DEFER CALL mpisec_leave_out)
