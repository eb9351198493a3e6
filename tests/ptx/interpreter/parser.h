#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/interpreter/program.h"

namespace dgc::ptx {

// A file of PTX, in which the places of the entries are known and nothing is parsed yet: there are many files, and a
// test launches few kernels.
class Module {
 public:
  // `file` is what errors call it.
  Module(std::string file, std::string text);

  const std::vector<std::string>& entries() const { return names_; }
  // Parses one of them. Throws PtxError, which names the line, where the text is not PTX.
  Program parse(const std::string& entry) const;

 private:
  struct Place {
    size_t offset;
    unsigned line;
  };
  std::string file_, text_;
  std::vector<std::string> names_;
  std::vector<Place> places_;
  std::vector<Place> arrays_;  // declared outside of entries
};

}  // namespace dgc::ptx
