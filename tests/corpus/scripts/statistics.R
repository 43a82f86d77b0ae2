# Fits models and keeps the results, with all that their formulas' environments hold, or only the coefficients.
arguments <- commandArgs(TRUE)
set.seed(as.integer(arguments[2]))
results <- list()
fit <- function() {
  x <- rnorm(300); y <- x * 2 + rnorm(300)
  model <- lm(y ~ x)
  if (arguments[1] == "leaks") model else coef(model)
}
n <- 0
repeat {
  n <- n + 1
  slot <- if (arguments[1] == "leaks") n else n %% 100 + 1
  results[[slot]] <- fit()
  Sys.sleep(0.3 + runif(1) * 0.2)
}
