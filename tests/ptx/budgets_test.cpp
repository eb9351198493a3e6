#include <cxxabi.h>

#include <algorithm>
#include <catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <string>

#include "paths.h"
#include "tests/support/shell.h"

// What ptxas makes of every kernel for an H100 (sm_90): a change that takes more than is written here is to be noticed.
namespace {

struct Resources {
  int registers = 0, stack = 0, spilled = 0, shared = 0;
};

// "dgc::cuda::DgcCompress" of _ZN3dgc4cuda6globalINS0_11DgcCompressEEEvNT_4ArgsE.
std::string kernel_of(const std::string& entry) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(entry.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  const std::string whole = status == 0 ? name.get() : entry;
  const auto begin = whole.find("global<") + 7, end = whole.rfind(">(");
  return end == std::string::npos ? whole : whole.substr(begin, end - begin);
}

int number_before(const std::string& text, const std::string& words) {
  std::smatch match;
  return std::regex_search(text, match, std::regex("([0-9]+) " + words)) ? std::stoi(match[1]) : 0;
}

// By kernel, of all kernels of a file of PTX.
std::map<std::string, Resources> resources_of(const std::filesystem::path& ptx) {
  const std::string text =
      dgc::test::run_in_shell(dgc::test::command_of({DGC_PTXAS, "-arch=sm_90", "-v", "-o", "/dev/null", ptx}) + " 2>&1")
          .output;
  const std::string start = "Compiling entry function '";
  std::map<std::string, Resources> found;
  for (size_t at = text.find(start); at != std::string::npos;) {
    const size_t name = at + start.size(), next = text.find(start, name);
    const std::string part = text.substr(name, next - name);
    found[kernel_of(part.substr(0, part.find('\'')))] = {
        .registers = std::stoi(part.substr(part.find("Used ") + 5)),
        .stack = number_before(part, "bytes stack frame"),
        .spilled = number_before(part, "bytes spill stores") + number_before(part, "bytes spill loads"),
        .shared = number_before(part, "bytes smem")};
    at = next;
  }
  return found;
}

bool has_nvcc() {
  if (std::string(DGC_PTX_FOLDER).empty()) WARN("skipped: this build has no nvcc");
  return !std::string(DGC_PTX_FOLDER).empty();
}

}  // namespace

TEST_CASE("no kernel spills registers, and the DGC kernels keep to their budgets", "[ptx]") {
  if (!has_nvcc()) return;
  std::map<std::string, Resources> all;
  for (const auto& file : std::filesystem::directory_iterator(DGC_PTX_FOLDER)) {
    if (file.path().extension() == ".ptx") all.merge(resources_of(file.path()));
  }
  CHECK(all.size() >= 199);
  // The stacks hold the four sums of XXH64, which one thread indexes when it seals a message.
  const std::map<std::string, Resources> budgets{{"DgcCompress", {.registers = 96, .stack = 48, .shared = 9272}},
                                                 {"DgcEncode", {.registers = 64, .stack = 48, .shared = 9272}},
                                                 {"DgcDecode", {.registers = 96, .shared = 9288}},
                                                 {"DgcApply", {.registers = 64, .shared = 47152}},
                                                 {"DgcStep", {.registers = 64}},
                                                 {"DgcScatter", {.registers = 32}},
                                                 {"DgcPack", {.registers = 32}},
                                                 {"DgcPackHalf", {.registers = 32}},
                                                 {"DgcSumHalf", {.registers = 16}},
                                                 {"DgcDealOut", {.registers = 64, .shared = 128}},
                                                 {"DgcSumDealt", {.registers = 40, .shared = 17408}},
                                                 {"DgcUndeal", {.registers = 64, .shared = 16}},
                                                 {"DgcSettle", {.registers = 24}}};
  for (const auto& [name, budget] : budgets) {
    CAPTURE(name);
    CHECK(all.contains("dgc::cuda::" + name));
  }
  for (const auto& [name, has] : all) {
    CAPTURE(name, has.registers, has.stack, has.spilled, has.shared);
    CHECK(has.spilled == 0);
    CHECK(has.shared <= 48 << 10);
    const auto budget = budgets.find(name.substr(name.rfind("::") + 2));
    if (budget == budgets.end()) {
      CHECK(has.stack == 0);
      continue;
    }
    CHECK(has.registers <= budget->second.registers);
    CHECK(has.stack <= budget->second.stack);
    CHECK(has.shared <= budget->second.shared);
  }
}
