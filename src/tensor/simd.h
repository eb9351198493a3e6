#pragma once

// One binary for every x86-64 machine: the compiler makes a copy of the marked function per instruction set, and the
// loader picks one at start. Mark a plain function that works on one chunk and call it from inside an OpenMP region;
// the region itself cannot be marked, since its outlined body would lose the attribute. Every copy computes the same
// bits: -ffp-contract=off keeps a*b+c apart and std::fma is exact everywhere. Sums in several lanes must spell the
// lanes out. The loader's dispatch (ifunc) runs before a sanitizer is ready, so those builds get one plain copy.
// The names are levels of the instruction set: "arch=haswell" and the like match that one model of processor only.
#if defined(__x86_64__) && !defined(DGC_SANITIZED)
#define DGC_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DGC_MULTIVERSION
#endif
