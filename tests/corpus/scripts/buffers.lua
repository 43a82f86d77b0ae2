-- A plugin of Neovim's that shows results in scratch buffers, wiped out when their window is closed, or forgotten.
local form, seed = vim.env.FORM, tonumber(vim.env.SEED)
math.randomseed(seed)
local pause = 120 + math.random(80)
local function show()
  local buffer = vim.api.nvim_create_buf(false, true)
  local lines = {}
  for i = 1, math.random(60, 200) do lines[i] = ("result %d: %s"):format(i, ("word "):rep(math.random(5, 30))) end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.api.nvim_buf_set_keymap(buffer, "n", "q", "<cmd>close<cr>", {})
  if form == "steady" then vim.api.nvim_buf_delete(buffer, { force = true }) end
end
local timer = vim.loop.new_timer()
timer:start(pause, pause, vim.schedule_wrap(show))
