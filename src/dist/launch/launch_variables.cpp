#include "dist/launch/launch_variables.h"

#include <charconv>

#include "tensor/errors.h"

namespace dgc {

int64_t environment_number(const std::string& variable, const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    throw_user_error("{}={} is no number from {} to {}", variable, text, low, high);
  }
  return value;
}

int64_t required_number(const Environment& get, const char* variable, int64_t low, int64_t high, const char* because) {
  const auto text = get(variable);
  if (!text) throw_user_error("{} is not set, though {}", variable, because);
  return environment_number(variable, *text, low, high);
}

void check_ranks(const Launch& launch, const char* rank, const char* size, const char* local_rank) {
  if (launch.rank >= launch.size) {
    throw_user_error("{}={} contradicts {}={}: ranks count from 0", rank, launch.rank, size, launch.size);
  }
  if (launch.local_rank >= launch.size) {
    throw_user_error("{}={} contradicts {}={}: ranks count from 0", local_rank, launch.local_rank, size, launch.size);
  }
}

void check_local_size(const Launch& launch, const char* local_rank, const char* local_size, const char* size) {
  if (launch.size == 1) return;  // nobody asks, and the variable may be left over from the job around it
  if (launch.local_size > launch.size) {
    throw_user_error("{}={} contradicts {}={}: a machine has at most all ranks", local_size, launch.local_size, size,
                     launch.size);
  }
  if (launch.local_rank >= launch.local_size) {
    throw_user_error("{}={} contradicts {}={}: ranks count from 0", local_rank, launch.local_rank, local_size,
                     launch.local_size);
  }
}

}  // namespace dgc
