#include "tests/ptx/interpreter/program.h"

#include <algorithm>
#include <utility>

namespace dgc::ptx {
namespace {

struct TypeName {
  std::string_view name;
  Type type;
  unsigned bits;
};

constexpr TypeName kTypeNames[] = {
    {"pred", Type::pred, 1},      {"b8", Type::b8, 8},    {"b16", Type::b16, 16},     {"b32", Type::b32, 32},
    {"b64", Type::b64, 64},       {"u8", Type::u8, 8},    {"u16", Type::u16, 16},     {"u32", Type::u32, 32},
    {"u64", Type::u64, 64},       {"s8", Type::s8, 8},    {"s16", Type::s16, 16},     {"s32", Type::s32, 32},
    {"s64", Type::s64, 64},       {"f16", Type::f16, 16}, {"f16x2", Type::f16x2, 32}, {"bf16", Type::bf16, 16},
    {"bf16x2", Type::bf16x2, 32}, {"f32", Type::f32, 32}, {"f64", Type::f64, 64}};

}  // namespace

Type parse_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypeNames, name, &TypeName::name);
  return found == std::end(kTypeNames) ? Type::none : found->type;
}

unsigned bits_of(Type type) {
  const auto* const found = std::ranges::find(kTypeNames, type, &TypeName::type);
  return found == std::end(kTypeNames) ? 0 : found->bits;
}

bool Statement::has(std::string_view modifier) const {
  return std::find(opcode.begin() + 1, opcode.end(), modifier) != opcode.end();
}

Type Statement::type(size_t from_last) const {
  return from_last + 1 < opcode.size() ? parse_type(opcode[opcode.size() - 1 - from_last]) : Type::none;
}

}  // namespace dgc::ptx
