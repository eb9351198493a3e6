#include "tests/ptx/interpreter/names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace dgc::ptx {
namespace {

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::string readable_name(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

std::string kernel_of_entry(const std::string& entry) {
  std::string name = readable_name(entry);
  constexpr std::string_view kTemplate = "dgc::cuda::global<";
  const size_t begin = name.find(kTemplate), end = name.rfind(">(");
  if (begin == std::string::npos || end == std::string::npos) return {};
  name = name.substr(begin + kTemplate.size(), end - begin - kTemplate.size());
  name.erase(name.find_last_not_of(' ') + 1);
  // The tests' types for 16 bits (tests/emulation/kernels/cuda/model.h) have other names than CUDA's.
  replace(name, "__half", "dgc::cuda::f16");
  replace(name, "__nv_bfloat16", "dgc::cuda::bf16");
  return name;
}

std::string kernel_of_type(const std::type_info& type) { return readable_name(type.name()); }

}  // namespace dgc::ptx
