! lu: bench/kernels/lu.cpp once more, in Fortran ("use mpi"): the same problem (bench/kernels/flow.hpp), the same
! messages, the same numbers to compare with. Prints the same line, with "kernel": "lu-fortran".
module flow
    use iso_fortran_env, only: real64
    implicit none
    integer, parameter :: dp = real64, unknowns = 5

    real(dp) :: diffusion(unknowns, unknowns)  ! N
    real(dp) :: base(unknowns, unknowns, 3)    ! B_d
    real(dp) :: slope(unknowns, 3)             ! w_d

contains

    subroutine make_model()
        integer :: i, j, d

        do j = 1, unknowns
            do i = 1, unknowns
                diffusion(i, j) = merge(1 + 0.1_dp*(i - 1), 0.2_dp/(1 + abs(i - j)), i == j)
                do d = 1, 3
                    base(i, j, d) = sin(1.0_dp + (d - 1) + 2*(i - 1) + 3*(j - 1))
                end do
            end do
            do d = 1, 3
                slope(j, d) = cos(2.0_dp*(d - 1) + (j - 1))
            end do
        end do
    end subroutine

    pure function exact(x, y, z) result(u)
        real(dp), intent(in) :: x, y, z
        real(dp) :: u(unknowns)
        integer :: m

        do m = 0, unknowns - 1
            u(m + 1) = 1 + 0.1_dp*m + 0.5_dp*sin(2*x + m)*cos(3*y - m) + 0.3_dp*sin(4*z + 0.5_dp*m)*(x + y)
        end do
    end function

    pure function stiffness(u) result(s)
        real(dp), intent(in) :: u(unknowns)
        real(dp) :: s
        s = 1 + 0.1_dp*u(1)
    end function

    ! (over * s N + under * J_d) v
    pure function block_times(d, u, over, under, v) result(product)
        integer, intent(in) :: d
        real(dp), intent(in) :: u(unknowns), over, under, v(unknowns)
        real(dp) :: product(unknowns), s, along
        integer :: j

        s = over*stiffness(u)
        along = 0.1_dp*under*sum(slope(:, d)*v)
        product = along*u
        do j = 1, unknowns
            product = product + (s*diffusion(:, j) + under*base(:, j, d))*v(j)
        end do
    end function

    ! The sum over directions in R; near: the neighbours below and above in x, y, z.
    pure function differences(u, near, h) result(r)
        real(dp), intent(in) :: u(unknowns), near(unknowns, 6), h
        real(dp) :: r(unknowns), second(unknowns), first(unknowns), s
        integer :: d, j

        second = -6*u
        r = 0
        do d = 1, 3
            second = second + near(:, 2*d - 1) + near(:, 2*d)
            first = (near(:, 2*d) - near(:, 2*d - 1))/(2*h)
            r = r - 0.1_dp*u*sum(slope(:, d)*first)
            do j = 1, unknowns
                r = r - base(:, j, d)*first(j)
            end do
        end do
        s = stiffness(u)/(h*h)
        do j = 1, unknowns
            r = r + s*diffusion(:, j)*second(j)
        end do
    end function

    ! right = a⁻¹ right; elimination without pivots, for a strong diagonal
    pure subroutine solve(a, right)
        real(dp), intent(inout) :: a(unknowns, unknowns), right(unknowns)
        real(dp) :: inverse, factor
        integer :: pivot, i, j

        do pivot = 1, unknowns
            inverse = 1/a(pivot, pivot)
            do j = pivot + 1, unknowns
                a(pivot, j) = a(pivot, j)*inverse
            end do
            right(pivot) = right(pivot)*inverse
            do i = 1, unknowns
                if (i == pivot) cycle
                factor = a(i, pivot)
                do j = pivot + 1, unknowns
                    a(i, j) = a(i, j) - factor*a(pivot, j)
                end do
                right(i) = right(i) - factor*right(pivot)
            end do
        end do
    end subroutine
end module

program lu
    use mpi
    use flow
    use iso_fortran_env, only: error_unit, int64
    implicit none

    type :: size_type
        character :: letter
        integer :: points, iterations
        real(dp) :: error, step
    end type
    type(size_type), parameter :: sizes(4) = [ & ! as in lu.cpp
        size_type("S", 32, 100, 1.547951502156e-02_dp, 4.174805167467e-04_dp), &
        size_type("W", 48, 110, 5.706748118511e-02_dp, 7.400363691684e-04_dp), &
        size_type("A", 64, 160, 7.167434663007e-02_dp, 5.455274032040e-04_dp), &
        size_type("B", 96, 230, 1.089718452013e-01_dp, 4.099648984759e-04_dp)]
    real(dp), parameter :: omega = 1.2_dp, time_step = 0.02_dp

    type(size_type) :: chosen
    integer :: rank, ranks, n, nx, ny, nz, first_x, first_y, west, east, south, north, iteration, ierr
    integer(int64) :: sent
    real(dp) :: h, started, seconds, all
    real(dp), allocatable :: u(:, :, :, :), step(:, :, :, :), f(:, :, :, :), known(:, :, :, :)
    real(dp), allocatable, asynchronous :: column_west(:, :, :), column_east(:, :, :), row_south(:, :, :), row_north(:, :, :)
    real(dp), allocatable, asynchronous :: from_west(:, :, :), from_east(:, :, :), from_south(:, :, :), from_north(:, :, :)

    call choose()
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call make_model()
    call make_box()
    call begin()
    call iterate()
    call begin()
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    sent = 0
    started = MPI_Wtime()
    do iteration = 1, chosen%iterations
        call iterate()
    end do
    seconds = MPI_Wtime() - started
    call MPI_Allreduce(seconds, all, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
    call report(all)

contains

    subroutine choose()
        character(len=20) :: argument
        integer :: i

        call get_command_argument(1, argument)
        do i = 1, size(sizes)
            chosen = sizes(i)
            if (command_argument_count() == 1 .and. argument == chosen%letter) return
        end do
        write (error_unit, "(a)") "lu-fortran: the one argument is the class: S, W, A or B, for work of about 1, 2, 8 or "// &
            "30 seconds on 2 cores"
        stop 2
    end subroutine

    ! The grid of ranks over y and x, this rank's box and what does not change.
    subroutine make_box()
        integer :: sides(2), column, row, i, j, k

        n = chosen%points
        h = 1.0_dp/(n + 1)
        sides = 0
        call MPI_Dims_create(ranks, 2, sides, ierr)
        if (sides(1) > n) call stop_all("lu-fortran: there are more ranks along a side of the box than points", 2)
        column = mod(rank, sides(2))
        row = rank/sides(2)
        first_x = n*column/sides(2)
        nx = n*(column + 1)/sides(2) - first_x
        first_y = n*row/sides(1)
        ny = n*(row + 1)/sides(1) - first_y
        nz = n
        west = merge(rank - 1, MPI_PROC_NULL, column > 0)
        east = merge(rank + 1, MPI_PROC_NULL, column + 1 < sides(2))
        south = merge(rank - sides(2), MPI_PROC_NULL, row > 0)
        north = merge(rank + sides(2), MPI_PROC_NULL, row + 1 < sides(1))

        allocate (u(unknowns, 0:nx + 1, 0:ny + 1, 0:nz + 1))
        allocate (step, f, known, mold=u)
        allocate (column_west(unknowns, ny, nz), row_south(unknowns, nx, nz))
        allocate (column_east, from_west, from_east, mold=column_west)
        allocate (row_north, from_south, from_north, mold=row_south)
        do k = 0, nz + 1
            do j = 0, ny + 1
                do i = 0, nx + 1
                    known(:, i, j, k) = exact((first_x + i)*h, (first_y + j)*h, k*h)
                end do
            end do
        end do
        f = 0
        step = 0
        do k = 1, nz
            do j = 1, ny
                do i = 1, nx
                    f(:, i, j, k) = -at(known, i, j, k)
                end do
            end do
        end do
    end subroutine

    ! The sum over directions in R at a point of a field.
    function at(field, i, j, k) result(r)
        real(dp), intent(in) :: field(unknowns, 0:nx + 1, 0:ny + 1, 0:nz + 1)
        integer, intent(in) :: i, j, k
        real(dp) :: r(unknowns), near(unknowns, 6)

        near(:, 1) = field(:, i - 1, j, k)
        near(:, 2) = field(:, i + 1, j, k)
        near(:, 3) = field(:, i, j - 1, k)
        near(:, 4) = field(:, i, j + 1, k)
        near(:, 5) = field(:, i, j, k - 1)
        near(:, 6) = field(:, i, j, k + 1)
        r = differences(field(:, i, j, k), near, h)
    end function

    ! The solution on the boundary; inside it is off by what is zero on the boundary.
    subroutine begin()
        real(dp) :: x, y, z, bubble
        integer :: i, j, k, m

        u = known
        do k = 1, nz
            z = k*h
            do j = 1, ny
                y = (first_y + j)*h
                do i = 1, nx
                    x = (first_x + i)*h
                    bubble = 64*x*(1 - x)*y*(1 - y)*z*(1 - z)
                    do m = 0, unknowns - 1
                        u(m + 1, i, j, k) = u(m + 1, i, j, k) + bubble*cos(3*x + 5*y*z + m)
                    end do
                end do
            end do
        end do
    end subroutine

    subroutine iterate()
        integer :: i, j, k

        call exchange_layers()
        do k = 1, nz
            do j = 1, ny
                do i = 1, nx
                    step(:, i, j, k) = time_step*omega*(2 - omega)*(at(u, i, j, k) + f(:, i, j, k))
                end do
            end do
        end do
        do k = 1, nz
            call lower_plane(k)
        end do
        do k = nz, 1, -1
            call upper_plane(k)
        end do
        u(:, 1:nx, 1:ny, 1:nz) = u(:, 1:nx, 1:ny, 1:nz) + step(:, 1:nx, 1:ny, 1:nz)
    end subroutine

    subroutine exchange_layers()
        integer :: requests(8)

        call MPI_Irecv(from_west, size(from_west), MPI_DOUBLE_PRECISION, west, 1, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Irecv(from_east, size(from_east), MPI_DOUBLE_PRECISION, east, 2, MPI_COMM_WORLD, requests(2), ierr)
        call MPI_Irecv(from_south, size(from_south), MPI_DOUBLE_PRECISION, south, 3, MPI_COMM_WORLD, requests(3), ierr)
        call MPI_Irecv(from_north, size(from_north), MPI_DOUBLE_PRECISION, north, 4, MPI_COMM_WORLD, requests(4), ierr)
        column_west = u(:, 1, 1:ny, 1:nz)
        column_east = u(:, nx, 1:ny, 1:nz)
        row_south = u(:, 1:nx, 1, 1:nz)
        row_north = u(:, 1:nx, ny, 1:nz)
        call MPI_Isend(column_east, size(column_east), MPI_DOUBLE_PRECISION, east, 1, MPI_COMM_WORLD, requests(5), ierr)
        call MPI_Isend(column_west, size(column_west), MPI_DOUBLE_PRECISION, west, 2, MPI_COMM_WORLD, requests(6), ierr)
        call MPI_Isend(row_north, size(row_north), MPI_DOUBLE_PRECISION, north, 3, MPI_COMM_WORLD, requests(7), ierr)
        call MPI_Isend(row_south, size(row_south), MPI_DOUBLE_PRECISION, south, 4, MPI_COMM_WORLD, requests(8), ierr)
        call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE, ierr)
        if (west /= MPI_PROC_NULL) u(:, 0, 1:ny, 1:nz) = from_west
        if (east /= MPI_PROC_NULL) u(:, nx + 1, 1:ny, 1:nz) = from_east
        if (south /= MPI_PROC_NULL) u(:, 1:nx, 0, 1:nz) = from_south
        if (north /= MPI_PROC_NULL) u(:, 1:nx, ny + 1, 1:nz) = from_north
        call count_sent(size(column_west), west, east)
        call count_sent(size(row_south), south, north)
    end subroutine

    subroutine count_sent(numbers, one, another)
        integer, intent(in) :: numbers, one, another

        sent = sent + 8_int64*numbers*count([one, another] /= MPI_PROC_NULL)
    end subroutine

    ! Edges of plane k: the column at x index i, the row at y index j.
    subroutine receive_edges(k, from_x, i, from_y, j)
        integer, intent(in) :: k, from_x, i, from_y, j

        if (from_x /= MPI_PROC_NULL) then
            call MPI_Recv(from_west, unknowns*ny, MPI_DOUBLE_PRECISION, from_x, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
            step(:, i, 1:ny, k) = from_west(:, :, 1)
        end if
        if (from_y /= MPI_PROC_NULL) call MPI_Recv(step(1, 1, j, k), unknowns*nx, MPI_DOUBLE_PRECISION, from_y, k, &
                                                   MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    end subroutine

    subroutine send_edges(k, to_x, i, to_y, j)
        integer, intent(in) :: k, to_x, i, to_y, j

        if (to_x /= MPI_PROC_NULL) then
            column_east(:, :, 1) = step(:, i, 1:ny, k)
            call MPI_Send(column_east, unknowns*ny, MPI_DOUBLE_PRECISION, to_x, k, MPI_COMM_WORLD, ierr)
        end if
        if (to_y /= MPI_PROC_NULL) call MPI_Send(step(1, 1, j, k), unknowns*nx, MPI_DOUBLE_PRECISION, to_y, k, &
                                                 MPI_COMM_WORLD, ierr)
        call count_sent(unknowns*ny, to_x, MPI_PROC_NULL)
        call count_sent(unknowns*nx, to_y, MPI_PROC_NULL)
    end subroutine

    ! What the neighbours on one side (-1 below, 1 above) contribute: omega times their blocks of I - tau R'.
    function from_neighbours(i, j, k, side) result(total)
        integer, intent(in) :: i, j, k, side
        real(dp) :: total(unknowns), over, under

        over = -omega*time_step/(h*h)
        under = omega*side*time_step/(2*h)
        total = block_times(1, u(:, i, j, k), over, under, step(:, i + side, j, k)) &
                + block_times(2, u(:, i, j, k), over, under, step(:, i, j + side, k)) &
                + block_times(3, u(:, i, j, k), over, under, step(:, i, j, k + side))
    end function

    ! right = D⁻¹ right
    subroutine divide(i, j, k, right)
        integer, intent(in) :: i, j, k
        real(dp), intent(inout) :: right(unknowns)
        real(dp) :: diagonal(unknowns, unknowns)
        integer :: m

        diagonal = 6*time_step/(h*h)*stiffness(u(:, i, j, k))*diffusion
        do m = 1, unknowns
            diagonal(m, m) = diagonal(m, m) + 1
        end do
        call solve(diagonal, right)
    end subroutine

    subroutine lower_plane(k)
        integer, intent(in) :: k
        real(dp) :: v(unknowns)
        integer :: i, j

        call receive_edges(k, west, 0, south, 0)
        do j = 1, ny
            do i = 1, nx
                v = step(:, i, j, k) - from_neighbours(i, j, k, -1)
                call divide(i, j, k, v)
                step(:, i, j, k) = v
            end do
        end do
        call send_edges(k, east, nx, north, ny)
    end subroutine

    subroutine upper_plane(k)
        integer, intent(in) :: k
        real(dp) :: v(unknowns)
        integer :: i, j

        call receive_edges(k, east, nx + 1, north, ny + 1)
        do j = ny, 1, -1
            do i = nx, 1, -1
                v = from_neighbours(i, j, k, 1)
                call divide(i, j, k, v)
                step(:, i, j, k) = step(:, i, j, k) - v
            end do
        end do
        call send_edges(k, west, 1, south, 1)
    end subroutine

    ! The root of the mean of squares over all points and quantities.
    function mean(field) result(root)
        real(dp), intent(in) :: field(:, :, :, :)
        real(dp) :: root, mine, total

        mine = sum(field**2)
        call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
        root = sqrt(total/(real(n, dp)**3*unknowns))
    end function

    function as_expected(what, found, expected) result(yes)
        character(len=*), intent(in) :: what
        real(dp), intent(in) :: found, expected
        logical :: yes

        yes = abs(found - expected) <= 1e-8_dp*expected
        if (.not. yes .and. rank == 0) write (error_unit, "(3a, es22.14, a, es22.14)") &
            "lu-fortran: verification failed: the ", what, " is", found, " instead of", expected
    end function

    subroutine report(time)
        real(dp), intent(in) :: time
        real(dp) :: error, last, megabytes, mine
        logical :: verified
        character(len=24) :: numbers(2)

        error = mean(u(:, 1:nx, 1:ny, 1:nz) - known(:, 1:nx, 1:ny, 1:nz))
        last = mean(step(:, 1:nx, 1:ny, 1:nz))
        verified = as_expected("error", error, chosen%error)
        if (verified) verified = as_expected("last step", last, chosen%step)
        mine = real(sent, dp)/1e6_dp
        call MPI_Allreduce(mine, megabytes, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
        write (numbers, "(f20.6)") time, megabytes
        if (rank == 0) print "(3a, i0, 3a, i0, 5a)", '{"kernel": "lu-fortran", "class": "', chosen%letter, '", "ranks": ', &
            ranks, ', "seconds": ', trim(adjustl(numbers(1))), ', "iterations": ', chosen%iterations, ', "verified": ', &
            trim(merge("true ", "false", verified)), ', "megabytes_sent": ', trim(adjustl(numbers(2))), '}'
        call stop_all("", merge(0, 1, verified))
    end subroutine

    subroutine stop_all(why, status)
        character(len=*), intent(in) :: why
        integer, intent(in) :: status

        if (rank == 0 .and. len(why) > 0) write (error_unit, "(a)") why
        call end_quietly()
        if (status == 1) stop 1
        if (status == 2) stop 2
        stop
    end subroutine

    ! MPICH 4.0 over UCX may hang in MPI_Finalize across nodes unless all are quiet before (docs/lab.md).
    subroutine end_quietly()
        use iso_c_binding, only: c_int
        interface
            function usleep(microseconds) bind(c)
                import c_int
                integer(c_int), value :: microseconds
                integer(c_int) :: usleep
            end function
        end interface
        integer(c_int) :: ignored

        call MPI_Barrier(MPI_COMM_WORLD, ierr)
        ignored = usleep(20000_c_int)
        call MPI_Finalize(ierr)
    end subroutine
end program
