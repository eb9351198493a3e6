#pragma once

#include "tensor/params.h"
#include "tools/bench/bench.h"

namespace dgc {

// The layouts of the models, in the order of BenchModel: 25,557,032, 51,034,000 and 117,461,168 parameters.
ParamLayout bench_params(BenchModel model);

}  // namespace dgc
