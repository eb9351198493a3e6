#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/interpreter/kernel.h"

namespace dgc::ptx {

// Kernels by name, each of which is made when it is first asked for.
class KernelLibrary {
 public:
  explicit KernelLibrary(std::string place) : place_(std::move(place)) {}  // where they come from, for errors

  std::vector<std::string> names() const;  // of all kernels, as kernel_of_type() gives them, in order
  // May be called from several threads. Throws PtxError where there is none, or it has an instruction that is not
  // known.
  const Kernel& kernel(const std::string& name);

 protected:
  void add(const std::string& name, std::function<Kernel()> make);

 private:
  struct Entry {
    std::function<Kernel()> make;
    std::optional<Kernel> kernel;
  };
  std::string place_;
  std::map<std::string, Entry> entries_;
  std::mutex mutex_;
};

}  // namespace dgc::ptx
