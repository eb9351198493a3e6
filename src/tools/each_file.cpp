#include "tools/each_file.h"

#include <spdlog/spdlog.h>

#include "tensor/errors.h"
#include "tensor/printable.h"

namespace dgc {

void for_each_file(const std::vector<std::string>& files, const std::function<void(const std::string& file)>& body) {
  if (files.size() == 1) return body(files.front());
  int64_t bad = 0;
  for (const std::string& file : files) {
    try {
      body(file);
    } catch (const UserError& error) {
      spdlog::error("{}", printable(error.what()));
      ++bad;
    }
  }
  if (bad > 0) throw_user_error("{} of {} files could not be used; each is named above", bad, files.size());
}

}  // namespace dgc
