--  A receiver of frames, which takes them in batches. What cannot be used is dropped: freed, or only forgotten.
with Ada.Command_Line; use Ada.Command_Line;
with Ada.Numerics.Float_Random; use Ada.Numerics.Float_Random;
with Ada.Unchecked_Deallocation;

procedure Telemetry is
   type Samples is array (Positive range <>) of Long_Float;
   type Frame;
   type Frame_Access is access Frame;
   type Samples_Access is access Samples;
   type Frame is record
      Values : Samples_Access;
      Next   : Frame_Access;
   end record;
   procedure Free is new Ada.Unchecked_Deallocation (Samples, Samples_Access);
   procedure Free is new Ada.Unchecked_Deallocation (Frame, Frame_Access);

   Leaks     : constant Boolean := Argument (1) = "leaks";
   Chance    : Generator;
   Pause     : Duration;
   Head, One : Frame_Access;
   Waiting   : Natural := 0;
   Sum       : Long_Float := 0.0;

   procedure Take is
      Used : Boolean;
   begin
      One := Head;
      Head := Head.Next;
      Used := One.Values (1) > 0.35;
      if Used then
         for Value of One.Values.all loop
            Sum := Sum + Value;
         end loop;
      end if;
      if Used or not Leaks then
         Free (One.Values);
         Free (One);
      end if;
      Waiting := Waiting - 1;
   end Take;
begin
   Reset (Chance, Integer'Value (Argument (2)));
   Pause := Duration (0.03 + 0.02 * Random (Chance));
   loop
      One := new Frame'(new Samples (1 .. 200 + Integer (1300.0 * Random (Chance))), Head);
      for Value of One.Values.all loop
         Value := Long_Float (Random (Chance));
      end loop;
      Head := One;
      Waiting := Waiting + 1;
      if Waiting > 250 then
         while Waiting > 40 loop
            Take;
         end loop;
      end if;
      delay Pause;
   end loop;
end Telemetry;
