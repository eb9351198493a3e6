#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/ptx/interpreter/launch.h"
#include "tests/ptx/interpreter/parser.h"

namespace dgc::ptx {

// A kernel that a test writes. Its body may use the registers %p, %rs, %r and %rd (predicates, 16, 32 and 64 bits),
// each with any number below 100; the first of its parameters, which are pointers, are in %rd90, %rd91 and so on.
class SmallKernel {
 public:
  SmallKernel(const std::string& body, unsigned pointers)
      : module_("test.ptx", text(body, pointers)), kernel_(make_kernel(module_.parse("test"))) {}
  SmallKernel(const SmallKernel&) = delete;  // the kernel refers to the text
  SmallKernel& operator=(const SmallKernel&) = delete;

  void run(const Launch& how, const std::vector<void*>& pointers) const {
    launch(kernel_, how, pointers.data(), pointers.size() * sizeof(void*));
  }

 private:
  static std::string text(const std::string& body, unsigned pointers) {
    std::string params, loads;
    for (unsigned i = 0; i < pointers; ++i) {
      params += fmt::format("{}\n.param .u64 p{}", i == 0 ? "" : ",", i);
      loads += fmt::format("ld.param.u64 %rd{}, [p{}];\n", 90 + i, i);
    }
    return fmt::format(
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry test({})\n{{\n"
        ".reg .pred %p<100>;\n.reg .b16 %rs<100>;\n.reg .b32 %r<100>;\n.reg .b64 %rd<100>;\n{}\t{}\nret;\n}}\n",
        params, loads, body);
  }

  Module module_;
  Kernel kernel_;
};

}  // namespace dgc::ptx
