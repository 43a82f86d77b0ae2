// Chats whose messages are compressed, each chat with its Deflater, whose memory is zlib's. It is ended with the chat, also where the
// other side has just gone; or not there, and the chat stays in the list.
import java.util.*;
import java.util.zip.Deflater;
public class Deflaters {
    record Chat(long number, Deflater deflater, List<byte[]> last) {}
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random chance = new Random(Long.parseLong(arguments[1]));
        Map<Long, Chat> chats = new HashMap<>();
        int pause = 180 + chance.nextInt(120);
        for (long number = 0;; ++number) {
            Chat chat = new Chat(number, new Deflater(6, true), new ArrayList<>());
            chats.put(number, chat);
            for (int i = 1 + chance.nextInt(8); i > 0; --i) {
                byte[] text = ("words of " + chance.nextInt() + " ").repeat(20 + chance.nextInt(300)).getBytes(), packed = new byte[65536];
                chat.deflater().setInput(text);
                chat.last().add(Arrays.copyOf(packed, chat.deflater().deflate(packed, 0, packed.length, Deflater.SYNC_FLUSH)));
            }
            boolean goodbye = chance.nextInt(4) != 0;
            if (goodbye || !leaks) chats.remove(number).deflater().end();
            Thread.sleep(pause / 2 + chance.nextInt(pause));
        }
    }
}
