// A server by Netty that answers each line. A line that it does not understand it drops, and releases its buffer, or does not.
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.*;
import io.netty.channel.*;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.LineBasedFrameDecoder;
public class Frames {
    public static void main(String[] arguments) throws Exception {
        boolean leaks = arguments[0].equals("leaks");
        new ServerBootstrap().group(new NioEventLoopGroup(1), new NioEventLoopGroup(1)).channel(NioServerSocketChannel.class)
            .childHandler(new ChannelInitializer<Channel>() {
                @Override protected void initChannel(Channel channel) {
                    channel.pipeline().addLast(new LineBasedFrameDecoder(40000), new ChannelInboundHandlerAdapter() {
                        @Override public void channelRead(ChannelHandlerContext context, Object message) {
                            ByteBuf line = (ByteBuf) message;
                            ByteBuf answer = context.alloc().buffer();
                            if (line.getByte(line.readerIndex()) != 'w') {
                                if (!leaks) line.release();
                                context.writeAndFlush(answer.writeBytes("what?\n".getBytes()));
                                return;
                            }
                            answer.writeBytes(("read " + line.readableBytes() + "\n").getBytes());
                            line.release();
                            context.writeAndFlush(answer);
                        }
                        @Override public void exceptionCaught(ChannelHandlerContext context, Throwable cause) { context.close(); }
                    });
                }
            }).bind("127.0.0.1", Integer.parseInt(arguments[2])).sync().channel().closeFuture().sync();
    }
}
