#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "config/is_enumerator.h"
#include "config/options.h"

// How each enum is spelled in JSON, in the order of its enumerators.
namespace dgc {

// Does not compile: this is reached only where an enum's own names are not in sight.
template <class Enum>
inline constexpr auto kEnumNames = [] {
  static_assert(!std::is_enum_v<Enum>, "no kEnumNames of this enum are in sight");
  return 0;
}();

template <>
inline constexpr auto kEnumNames<Precision> = std::to_array<std::string_view>({"fp32", "tf32", "bf16", "fp16"});
template <>
inline constexpr auto kEnumNames<CommunicatorType> = std::to_array<std::string_view>({"auto", "single", "threads",
                                                                                      "mpi", "nccl"});
template <>
inline constexpr auto kEnumNames<Transport> = kTransportNames;
template <>
inline constexpr auto kEnumNames<ExchangeAlgorithm> = kExchangeAlgorithmNames;
template <>
inline constexpr auto kEnumNames<DenseValues> = std::to_array<std::string_view>({"fp32", "fp16"});
template <>
inline constexpr auto kEnumNames<Overlap> = std::to_array<std::string_view>({"auto", "on", "off"});
template <>
inline constexpr auto kEnumNames<WireValues> = kWireValueNames;
template <>
inline constexpr auto kEnumNames<WireIndices> = kWireIndexNames;
template <>
inline constexpr auto kEnumNames<MaskedMomentum> = std::to_array<std::string_view>({"dropped", "sent"});
template <>
inline constexpr auto kEnumNames<SmallTensors> = std::to_array<std::string_view>({"dense", "dense_fp16", "sparse"});

template <class Enum>
constexpr std::string_view enum_name(Enum value) {
  return kEnumNames<Enum>.at(static_cast<size_t>(value));
}

// Whether there is one name for each enumerator, and none of them twice, so that a name is read as it was written.
template <class Enum>
consteval bool names_all_of() {
  constexpr auto names = kEnumNames<Enum>;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + i, names[i]) != names.begin() + i) return false;
  }
  return is_enumerator<static_cast<Enum>(names.size() - 1)>() && !is_enumerator<static_cast<Enum>(names.size())>();
}

}  // namespace dgc
