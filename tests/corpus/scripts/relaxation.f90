! A solver that refines its grid. The old grid's pointer is given back before the new one is taken, or just overwritten.
module sleeping
  use iso_c_binding
  interface
    integer(c_int) function usleep(microseconds) bind(c, name="usleep")
      import
      integer(c_int), value :: microseconds
    end function
  end interface
end module

program relaxation
  use sleeping
  implicit none
  real(8), pointer :: grid(:,:) => null(), finer(:,:)
  real(8), allocatable :: output(:,:)
  real(8) :: number
  character(32) :: form, seed_text
  integer :: seed, side, step, i, size_of_seed, pause, turn
  integer, allocatable :: seeds(:)
  call get_command_argument(1, form)
  call get_command_argument(2, seed_text)
  read (seed_text, *) seed
  call random_seed(size=size_of_seed)
  allocate (seeds(size_of_seed), source=seed)
  call random_seed(put=seeds)
  call random_number(number)
  pause = int(150000 + 150000 * number)
  allocate (grid(40, 40))
  grid = 0
  turn = 0
  do
    turn = turn + 1
    if (modulo(turn, 40) == 30) allocate (output(600, 600), source=grid(1, 1))  ! for the report, every few seconds
    if (modulo(turn, 40) == 0) deallocate (output)
    call random_number(number)
    side = 30 + int(70 * number)
    allocate (finer(side, side))
    call random_number(finer)
    finer(1, 1) = grid(1, 1)
    do step = 1, 5
      do i = 2, side - 1
        finer(2:side-1, i) = 0.25d0 * (finer(1:side-2, i) + finer(3:side, i) + finer(2:side-1, i-1) + finer(2:side-1, i+1))
      end do
    end do
    if (form == "steady") deallocate (grid)
    grid => finer
    i = usleep(int(pause, c_int))
  end do
end program
