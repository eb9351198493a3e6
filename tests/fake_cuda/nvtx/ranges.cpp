// A library that NVTX loads (NVTX_INJECTION64_PATH), as a profiler's: it writes down the ranges that a thread opens, as
// a tree, between nvtx_ranges_begin() and nvtx_ranges_end().
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace {

thread_local bool listening = false;
thread_local std::string tree;
thread_local int depth = 0;

int push(const char* name) {
  if (!listening) return 0;
  tree += std::string(static_cast<size_t>(2 * depth), ' ') + name + "\n";
  return depth++;
}

int pop() { return listening ? --depth : 0; }

}  // namespace

extern "C" {

void nvtx_ranges_begin() {
  tree.clear();
  depth = 0;
  listening = true;
}

const char* nvtx_ranges_end() {
  listening = false;
  return tree.c_str();
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE_RangePop) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
}
