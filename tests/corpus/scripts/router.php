<?php // For PHP's own server, which gives everything back after each request.
$rows = array_map(fn($i) => str_repeat("row $i ", 50), range(1, 200));
echo json_encode(array_slice($rows, 0, 20));
