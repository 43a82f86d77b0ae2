% Filters signals; a global cell keeps every result, or the last fifty.
form = argv(){1}; seed = str2num(argv(){2});
rand("seed", seed); global kept; kept = {};
while true
  signal = filter(ones(1, 8) / 8, 1, rand(1, 2000 + floor(rand() * 2000)));
  kept{end + 1} = signal;
  if strcmp(form, "steady") && numel(kept) > 50, kept(1) = []; end
  pause(0.2);
end
