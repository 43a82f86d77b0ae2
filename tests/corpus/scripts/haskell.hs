-- The classic space leak: modifyIORef builds thunks that nobody forces; modifyIORef' does not.
import Control.Concurrent
import Control.Monad
import Data.IORef
import System.Environment
main :: IO ()
main = do
  [form, seed] <- getArgs
  total <- newIORef (read seed :: Integer)
  let update = if form == "leaks" then modifyIORef total else modifyIORef' total
  forever $ do
    forM_ [1 .. 600] $ \i -> update (+ i)
    let text = concatMap show [1 .. 400 :: Int]
    when (length text < 10) $ readIORef total >>= print
    threadDelay 30000
