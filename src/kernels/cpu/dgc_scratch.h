#pragma once

namespace dgc {

// What the DGC step keeps between calls, so that a steady step does not allocate.
struct DgcScratch {};

}  // namespace dgc
