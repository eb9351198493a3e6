#include "commands/overrides.h"

namespace dgc {

CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides, const std::string& description) {
  return command.add_option("--set", overrides, description)->take_all()->expected(1)->allow_extra_args(false);
}

}  // namespace dgc
