#pragma once

#include <string>
#include <vector>

#include "tensor/params.h"

namespace dgc {

// The tensors of a model whose compression the paper reports (PAPER: tables 3 to 6), or of one that strains a kernel.
struct BenchModel {
  std::string name;
  ParamLayout (*params)();
};
const std::vector<BenchModel>& bench_models();

}  // namespace dgc
