#include "tests/ptx/sass/listing.h"

#include <utility>

#include "json/text.h"
#include "tests/ptx/interpreter/error.h"

namespace dgc::ptx::sass {
namespace {

Line parse_line(const Json& json, const std::string& where) {
  Line line;
  for (const auto& [key, value] : json.items()) {
    if (key == "opcode") {
      line.opcode = value.get<std::string>();
    } else if (key == "operands") {
      line.operands = value.get<std::string>();
    } else if (key == "predicate") {
      line.predicate = value.get<std::string>();
    } else if (key != "other-attributes") {  // whether it is of control flow, which the opcode says
      throw_ptx_error("{}: an instruction with '{}', which is not known", where, key);
    }
  }
  // P2R R1, PR, RZ, 0x40: all predicates as one operand.
  if (line.predicate == "PR") {
    line.predicate.clear();
    line.opcode += ".PR";
  }
  return line;
}

}  // namespace

std::vector<Function> parse_listing(const std::string& json, const std::string& origin) {
  const Json all = parse_json(json, origin);
  if (!all.is_array() || all.size() != 2) throw_ptx_error("{} is not what nvdisasm -json prints", origin);
  std::vector<Function> functions;
  for (const Json& entry : all[1]) {
    Function& function = functions.emplace_back();
    function.name = json_member(entry, "function-name", origin).get<std::string>();
    if (json_member(entry, "start", origin) != 0) throw_ptx_error("{}: {} begins late", origin, function.name);
    for (const Json& line : json_member(entry, "sass-instructions", origin)) {
      function.lines.push_back(parse_line(line, origin));
    }
  }
  return functions;
}

}  // namespace dgc::ptx::sass
