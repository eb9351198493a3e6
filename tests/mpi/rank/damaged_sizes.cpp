#include <mpi.h>

#include <cstdint>
#include <cstring>

extern bool damages_sizes;  // whether this rank damages what it says of the sizes of its letters

// In the place of MPI's own function, which it calls.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  static uint64_t damaged[2];  // MPI reads it until the request is done
  if (damages_sizes && count == sizeof(damaged)) {
    std::memcpy(damaged, data, sizeof(damaged));
    damaged[0] += uint64_t{1} << 62;
    data = damaged;
  }
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
