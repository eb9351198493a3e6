#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/wire_message.h"

namespace dgc {

void CpuBackend::dgc_encode(const DgcEncodeArgs& args) { encode_message(args, threads_); }
void CpuBackend::dgc_decode(const DgcDecodeArgs& args) { decode_messages(args, threads_); }

}  // namespace dgc
