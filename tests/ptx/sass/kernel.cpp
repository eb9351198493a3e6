#include "tests/ptx/sass/kernel.h"

#include <algorithm>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/names.h"
#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {

Kernel make_kernel(const std::string& file, const Function& function, const Resources& resources) {
  if (!resources.code.empty() && resources.code.size() < function.lines.size()) {
    throw_ptx_error("{}: {} has more instructions than its machine code", file, readable_name(function.name));
  }
  Kernel kernel;
  kernel.lanes_meet_where_told = true;
  kernel.program.name = function.name;
  kernel.program.file = file;
  kernel.program.param_bytes = resources.param_bytes;
  kernel.program.shared_bytes = resources.shared_bytes;
  kernel.program.local_bytes = resources.stack_bytes;
  kernel.program.most_threads = resources.most_threads;
  Builder builder(kernel, resources);
  for (size_t number = 0; number < function.lines.size(); ++number) {
    builder.begin_address();
    Decoder d(builder, file, function, number);
    const auto families = {decode_integers, decode_logic,    decode_floats, decode_moves,
                           decode_memory,   decode_exchange, decode_flow};
    if (std::ranges::none_of(families, [&](auto family) { return family(d); }))
      d.fail("an instruction that is not known");
  }
  builder.finish();
  return kernel;
}

}  // namespace dgc::ptx::sass
