// Replaces mpi.cpp in a build without MPI.
#include "dist/communicator.h"
#include "tensor/errors.h"

namespace dgc {

std::unique_ptr<Communicator> make_mpi_communicator(const Launch&, MpiOptions) {
  throw_user_error("MPI is not in this build: install libopenmpi-dev (scripts/setup does) and build again");
}
std::string mpi_description() { return ""; }

}  // namespace dgc
