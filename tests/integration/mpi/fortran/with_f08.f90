! M13: a Fortran 2008 program with "use mpi_f08": typed handles, array sections, error codes left out. Prints "fortran ok".
program with_f08
    use mpi_f08
    implicit none
    integer, parameter :: most = 100000
    integer :: rank, ranks, to, from, k, n, got, i
    double precision :: start
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status, statuses(2)
    type(MPI_Message) :: message
    type(MPI_Comm) :: copy
    integer, dimension(4) :: sizes = [0, 3, 16385, most]
    integer, allocatable, asynchronous :: a(:), b(:)

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy)
    to = mod(rank + 1, ranks)
    from = mod(rank + ranks - 1, ranks)
    allocate (a(most), b(most))
    do k = 1, size(sizes)
        n = sizes(k)
        a = [(rank * 31 + i, i = 1, most)]
        b = -1
        call MPI_Irecv(b, n, MPI_INTEGER, from, k, copy, requests(1))
        call MPI_Issend(a, n, MPI_INTEGER, to, k, copy, requests(2))
        call MPI_Waitall(2, requests, statuses)
        call MPI_Get_count(statuses(1), MPI_INTEGER, got)
        if (got /= n .or. statuses(1)%MPI_SOURCE /= from .or. statuses(1)%MPI_TAG /= k) call fail("a status")
        if (any(b(1:n) /= [(from * 31 + i, i = 1, n)]) .or. any(b(n + 1:) /= -1)) call fail("the content")

        call MPI_Isend(a, n, MPI_INTEGER, to, 70, MPI_COMM_WORLD, requests(1))
        call MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, message, status)
        call MPI_Get_count(status, MPI_INTEGER, got)
        if (got /= n) call fail("the status of MPI_Mprobe")
        b = -1
        call MPI_Mrecv(b, n, MPI_INTEGER, message, MPI_STATUS_IGNORE)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
        if (any(b(1:n) /= [(from * 31 + i, i = 1, n)])) call fail("the content of a matched message")
        call MPI_Barrier(MPI_COMM_WORLD)
    end do
    k = rank
    call MPI_Allreduce(MPI_IN_PLACE, k, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    if (k /= ranks - 1) call fail("MPI_Allreduce")
    call MPI_Comm_free(copy)
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) print '(A)', "fortran ok"
    start = MPI_Wtime() ! a moment: MPICH 4.0.2 may hang in MPI_Finalize without
    do while (MPI_Wtime() - start < 0.05d0)
    end do
    call MPI_Finalize()
contains
    subroutine fail(what)
        character(*), intent(in) :: what
        print '(A, A)', "FAILED: ", what
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine
end program
