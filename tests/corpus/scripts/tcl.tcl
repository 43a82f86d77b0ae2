# A timeout for every request, cancelled when the request is done, or forgotten.
lassign $argv form seed
expr {srand($seed)}
proc expire {id data} {}
proc request {} {
    global form
    set data [string repeat x [expr {int(200 + rand() * 1500)}]]
    set words [lmap i {1 2 3 4 5 6} {string toupper "$data$i"}]
    set timer [after 3600000 [list expire [clock microseconds] [lindex $words 2]]]
    if {$form eq "steady"} {after cancel $timer}
    after [expr {int(20 + rand() * 20)}] request
}
request
vwait forever
