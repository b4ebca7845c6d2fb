! MPI_Comm_idup: the bindings convert the new handle when the call returns, or write to it later.
program duplicates
    use mpi_f08
    implicit none
    type(MPI_Comm) :: copy, other
    type(MPI_Request) :: requests(2)
    integer :: rank, ranks, total, compared

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call duplicate(requests)
    call overwrite_the_stack()
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, copy)
    call MPI_Comm_compare(copy, other, compared)
    if (total /= ranks*(ranks - 1)/2 .or. compared /= MPI_CONGRUENT) call MPI_Abort(MPI_COMM_WORLD, 1)
    call MPI_Comm_free(copy)
    call MPI_Comm_free(other)
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) print '(a)', 'fortran ok'
    call MPI_Finalize()
contains
    subroutine duplicate(requests)
        type(MPI_Request), intent(out) :: requests(2)
        call MPI_Comm_idup(MPI_COMM_WORLD, copy, requests(1))
        call MPI_Comm_idup(MPI_COMM_WORLD, other, requests(2))
    end subroutine
    subroutine overwrite_the_stack()
        integer, volatile :: some(4000)
        some = rank
    end subroutine
end program
