! M13: a Fortran 90 program with "use mpi": persistent operations, derived types, communicators. Prints "fortran ok".
program with_module
    use mpi
    implicit none
    integer, parameter :: most = 200000
    integer :: ierr, rank, ranks, to, from, k, n, column, split, new_rank, flag_count, rounds
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
    integer, dimension(3) :: sizes = [1, 8193, most]
    double precision, allocatable :: a(:), b(:), grid(:, :)
    double precision :: start
    logical :: flag

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    to = mod(rank + 1, ranks)
    from = mod(rank + ranks - 1, ranks)
    allocate (a(most), b(most), grid(100, 200))
    do k = 1, size(sizes)
        n = sizes(k)
        call MPI_Send_init(a, n, MPI_DOUBLE_PRECISION, to, k, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Recv_init(b, n, MPI_DOUBLE_PRECISION, from, k, MPI_COMM_WORLD, requests(2), ierr)
        do rounds = 1, 3
            a(1:n) = rank + 0.5d0 * rounds
            b(1:n) = -1
            call MPI_Startall(2, requests, ierr)
            flag = .false.
            do while (.not. flag)
                call MPI_Testall(2, requests, flag, statuses, ierr)
            end do
            call MPI_Get_count(statuses(:, 2), MPI_DOUBLE_PRECISION, flag_count, ierr)
            if (flag_count /= n) call fail("the count of a persistent receive")
            if (any(b(1:n) /= from + 0.5d0 * rounds)) call fail("the content of a persistent receive")
        end do
        call MPI_Request_free(requests(1), ierr)
        call MPI_Request_free(requests(2), ierr)
    end do

    ! A row of a matrix: every hundredth number.
    call MPI_Type_vector(200, 1, 100, MPI_DOUBLE_PRECISION, column, ierr)
    call MPI_Type_commit(column, ierr)
    grid = rank
    call MPI_Sendrecv(grid(1, 1), 1, column, to, 9, grid(100, 1), 1, column, from, 9, MPI_COMM_WORLD, status, ierr)
    if (any(grid(100, :) /= from) .or. any(grid(2:99, :) /= rank)) call fail("the row of a matrix")
    call MPI_Type_free(column, ierr)

    call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, split, ierr)
    call MPI_Comm_rank(split, new_rank, ierr)
    k = new_rank
    call MPI_Bcast(k, 1, MPI_INTEGER, 0, split, ierr)
    if (k /= 0) call fail("MPI_Bcast on a split communicator")
    call MPI_Comm_free(split, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(A)', "fortran ok"
    start = MPI_Wtime() ! a moment: MPICH 4.0.2 may hang in MPI_Finalize without
    do while (MPI_Wtime() - start < 0.05d0)
    end do
    call MPI_Finalize(ierr)
contains
    subroutine fail(what)
        character(*), intent(in) :: what
        print '(A, A)', "FAILED: ", what
        call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end subroutine
end program
