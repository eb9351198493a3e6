#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace dgc {

// What Linux's control groups (cgroups(7), versions 1 and 2) leave this process of the machine: docker --cpus and
// --memory, a pod's limits, CPUQuota and MemoryMax of systemd. Nothing where there is no limit.
//
// The files are looked for below `root`.

// Cores' worth of processor time.
std::optional<double> processor_limit(const std::filesystem::path& root = "/");

// Bytes that may still be taken. What the system holds of files can be had back, and counts as free.
std::optional<size_t> memory_left(const std::filesystem::path& root = "/");

}  // namespace dgc
