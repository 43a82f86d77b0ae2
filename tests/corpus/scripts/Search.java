// Lucene's index in memory, searched near real time. A reader that is not closed keeps the segments that have been merged since.
import java.nio.file.*;
import java.util.*;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.store.*;
public class Search {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        Random random = new Random(Long.parseLong(arguments[1]));
        int pause = 300 + random.nextInt(200);
        List<DirectoryReader> readers = new ArrayList<>();
        try (IndexWriter writer = new IndexWriter(new ByteBuffersDirectory(), new IndexWriterConfig(new WhitespaceAnalyzer()))) {
            for (long round = 0; ; ++round) {
                for (int i = 0; i < 25; ++i) {
                    Document document = new Document();
                    String id = String.valueOf(random.nextInt(400));
                    StringBuilder text = new StringBuilder();
                    for (int word = 0; word < 150; ++word) text.append("w").append(random.nextInt(100000)).append(' ');
                    document.add(new StringField("id", id, Field.Store.YES));
                    document.add(new TextField("text", text.toString(), Field.Store.YES));
                    writer.updateDocument(new Term("id", id), document);
                }
                DirectoryReader reader = DirectoryReader.open(writer);
                new IndexSearcher(reader).search(new TermQuery(new Term("text", "w" + random.nextInt(100000))), 10);
                if (leaks) readers.add(reader);
                else reader.close();
                Thread.sleep(pause);
            }
        }
    }
}
