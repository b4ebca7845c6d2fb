// The procedures of files that cross nodes, for the generated wrappers (gen/): arguments and results are those
// of the MPI standard, counts widened (M12). Procedures that are not here go to the library's file of this process.
#pragma once

#include <mpi.h>

#include "shim/process/process.hpp"

namespace mpisec::shim::io {

bool is_known(MPI_File file);
/// Whether the file crosses nodes. Programs without such files pay for a load and a branch.
inline bool crosses(MPI_File file) {
    return process.io_file_count.load(std::memory_order_relaxed) != 0 && is_known(file);
}

/// In MPI_Finalize, when no rank sends any more: ends what MPIsec has of files that the program has not closed.
void forget_files();

// The file as a whole (files.cpp)
int File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh);
int File_close(MPI_File* fh);
int File_set_size(MPI_File fh, MPI_Offset size);
int File_preallocate(MPI_File fh, MPI_Offset size);
int File_get_group(MPI_File fh, MPI_Group* group);
int File_get_amode(MPI_File fh, int* amode);
int File_set_info(MPI_File fh, MPI_Info info);
int File_get_info(MPI_File fh, MPI_Info* info);
int File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                  const char* datarep, MPI_Info info);
int File_set_atomicity(MPI_File fh, int flag);
int File_sync(MPI_File fh);

// With the shared file pointer (shared_pointer.cpp)
int File_seek_shared(MPI_File fh, MPI_Offset offset, int whence);
int File_get_position_shared(MPI_File fh, MPI_Offset* offset);
int File_read_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status);
int File_write_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status);
int File_iread_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Request* request);
int File_iwrite_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type,
                       MPI_Request* request);
int File_read_ordered(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status);
int File_write_ordered(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status);
int File_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type);
int File_read_ordered_end(MPI_File fh, void* buf, MPI_Status* status);
int File_write_ordered_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type);
int File_write_ordered_end(MPI_File fh, const void* buf, MPI_Status* status);

// By all ranks together (collective_access.cpp)
int File_read_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status);
int File_write_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Status* status);
int File_read_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype type,
                     MPI_Status* status);
int File_write_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype type,
                      MPI_Status* status);
int File_iread_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type, MPI_Request* request);
int File_iwrite_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type, MPI_Request* request);
int File_iread_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype type,
                      MPI_Request* request);
int File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype type,
                       MPI_Request* request);
int File_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype type);
int File_read_all_end(MPI_File fh, void* buf, MPI_Status* status);
int File_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype type);
int File_write_all_end(MPI_File fh, const void* buf, MPI_Status* status);
int File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype type);
int File_read_at_all_end(MPI_File fh, void* buf, MPI_Status* status);
int File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count,
                            MPI_Datatype type);
int File_write_at_all_end(MPI_File fh, const void* buf, MPI_Status* status);

}  // namespace mpisec::shim::io
