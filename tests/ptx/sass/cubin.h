#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// What ptxas says of a kernel beside its instructions.
namespace dgc::ptx::sass {

inline constexpr uint32_t kParamBase = 0x210;  // where the arguments lie in constant bank 0 of sm_90

struct Resources {
  std::vector<uint64_t> code;                 // the lower half of each instruction
  std::map<std::string, uint64_t> functions;  // of the same section: where each begins
  unsigned param_bytes = 0;
  unsigned shared_bytes = 0;  // with the first KiB, which belongs to the system
  unsigned stack_bytes = 0;
  unsigned most_threads = 1024;
};

// By the names of the kernels of a cubin; `origin` is what errors call it. Throws PtxError where the bytes are no cubin
// for sm_90.
std::map<std::string, Resources> read_cubin(const std::string& bytes, const std::string& origin);

}  // namespace dgc::ptx::sass
